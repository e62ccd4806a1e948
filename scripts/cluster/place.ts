/** Where the machine's one test cluster is. */
import path from "node:path";
import { kubernetesFolder } from "#scripts/cluster/build.ts";

export type Cluster = {
  /** Everything of this run; gone when it is down. */
  dir: string;
  /** The components' programs. */
  bin: string;
  kubeconfig: string;
  /** The node's network namespace, as a file. */
  netns: string;
  /** The node's address in it: pods reach what listens there. */
  address: string;
};

export const NETNS = "sluice-cluster";

export function clusterAt(): Cluster {
  // Short: socket names have a limit.
  const dir = "/var/tmp/sluice-cluster";
  const netns = `/run/netns/${NETNS}`;
  return { dir, bin: kubernetesFolder(), kubeconfig: path.join(dir, "admin.conf"), netns, address: "10.99.0.1" };
}

/** containerd's socket. */
export function socketOf(cluster: Cluster): string {
  return path.join(cluster.dir, "containerd", "socket");
}
