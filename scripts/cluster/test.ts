/** Runs the cluster tests inside the node's network, where API server, pods and what the tests start see one another. */
import { mkdir } from "node:fs/promises";
import path from "node:path";
import type { Images } from "#scripts/cluster/images.ts";
import type { Cluster } from "#scripts/cluster/place.ts";
import { run } from "#scripts/lib/processes.ts";
import { vitestCounts, vitestFailures, vitestWords } from "#scripts/test/vitest.ts";

/** What the tests are told about the cluster, as environment variables. */
export const CLUSTER_VARIABLES = {
  address: "SLUICE_TEST_CLUSTER_ADDRESS",
  folder: "SLUICE_TEST_CLUSTER_FOLDER",
  kubeconfig: "SLUICE_TEST_CLUSTER_KUBECONFIG",
  workspaceImages: "SLUICE_TEST_CLUSTER_WORKSPACE_IMAGES",
  controlPlaneImage: "SLUICE_TEST_CLUSTER_CONTROL_PLANE_IMAGE",
  gpudImage: "SLUICE_TEST_CLUSTER_GPUD_IMAGE",
  clientImage: "SLUICE_TEST_CLUSTER_CLIENT_IMAGE",
  bareImage: "SLUICE_TEST_CLUSTER_BARE_IMAGE",
  helm: "SLUICE_TEST_CLUSTER_HELM",
} as const;

/** The same with their values. */
export function clusterVariables(cluster: Cluster, images: Images, helm: string): Record<string, string> {
  return {
    [CLUSTER_VARIABLES.address]: cluster.address,
    [CLUSTER_VARIABLES.folder]: cluster.dir,
    [CLUSTER_VARIABLES.kubeconfig]: cluster.kubeconfig,
    [CLUSTER_VARIABLES.workspaceImages]: JSON.stringify(images.workspaces),
    [CLUSTER_VARIABLES.controlPlaneImage]: images.controlPlane,
    [CLUSTER_VARIABLES.gpudImage]: images.gpud,
    [CLUSTER_VARIABLES.clientImage]: images.client,
    [CLUSTER_VARIABLES.bareImage]: images.bare,
    [CLUSTER_VARIABLES.helm]: helm,
  };
}

/** `files`: parts of the names of those to run; none means all. */
type Setting = { root: string; out: string; images: Images; helm: string; files: readonly string[] };

/** `again`: the files in which something failed, and how many of their tests passed all the same. */
type Counts = { passed: number; failed: number; again: { files: string[]; passed: number } };

export async function runClusterTests(cluster: Cluster, { root, out, images, helm, files }: Setting): Promise<Counts> {
  await mkdir(out, { recursive: true });
  const file = path.join(out, "cluster.json");
  const words = vitestWords(file, "--config", "vitest.cluster.config.ts", "--reporter=verbose", ...files);
  const problem = await run("nsenter", [`--net=${cluster.netns}`, process.execPath, ...words], {
    cwd: root,
    env: {
      ...process.env,
      ...clusterVariables(cluster, images, helm),
    },
    onLine: (line) => console.log(line),
  }).then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
  );
  const counts = vitestCounts(file, problem !== undefined);
  if (counts === undefined) throw problem ?? new Error("The cluster tests left no report.");
  return { ...counts, again: vitestFailures(file) };
}
