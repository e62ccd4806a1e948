/** A storage driver on the test cluster's first node (`buckets/`): the kubelet mounts its volumes into pods by CSI. */
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { kubeletFolder, startBesideKubelet } from "#scripts/cluster/cluster.ts";
import type { Cluster } from "#scripts/cluster/place.ts";

/** Starts it under that name; gives the folder of its buckets. `halt(cluster, "buckets")` ends it. */
export async function startBuckets(cluster: Cluster, program: string, name: string): Promise<string> {
  const folder = path.join(cluster.dir, "buckets");
  await mkdir(folder, { recursive: true });
  await startBesideKubelet(cluster, "buckets", [program, name, kubeletFolder(cluster), folder]);
  return folder;
}
