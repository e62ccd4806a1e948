/** Where the machine's one test cluster is, and where each of its nodes. */
import path from "node:path";
import { kubernetesFolder } from "#scripts/cluster/build.ts";

/** As its first node sees it, where the control plane runs; each further node is a place of the same kind. */
export type Cluster = {
  /** The node's name. */
  node: string;
  /** Everything of this run; gone when it is down. */
  dir: string;
  /** The components' programs. */
  bin: string;
  kubeconfig: string;
  /** The node's network namespace, as a file. */
  netns: string;
  /** The node's address in it: pods reach what listens there. */
  address: string;
  /** The addresses of the node's pods. */
  pods: string;
  /** What the control groups of its pods are below. */
  controlGroup: string;
  /** Label and taint of a further node: only pods that ask for this pool run there. The first node has none. */
  pool?: string;
};

/** Key of the label and of the taint that keep a further node for the test file that added it. */
export const POOL = "test.sluice.dev/pool";

export function clusterAt(): Cluster {
  // Short: socket names have a limit.
  const dir = "/var/tmp/sluice-cluster";
  return {
    ...{ node: "node-1", dir, bin: kubernetesFolder(), kubeconfig: path.join(dir, "admin.conf") },
    ...{ netns: "/run/netns/sluice-cluster", address: "10.99.0.1", pods: "10.244.0.0/24", controlGroup: "/" },
  };
}

/**
 * A further node, which a test file adds for itself (`addNode`). `number`: from 2 to 9, and another one for each file, because
 * files run at the same time.
 */
export function furtherNode(cluster: Cluster, number: number, pool: string): Cluster {
  const node = `node-${number}`;
  return {
    ...cluster,
    ...{ node, pool, dir: path.join(cluster.dir, node), netns: `${cluster.netns}-${number}` },
    ...{ address: `10.99.0.${number}`, pods: `10.244.${number - 1}.0/24`, controlGroup: `/sluice-${node}` },
  };
}

/** containerd's socket. */
export function socketOf(cluster: Cluster): string {
  return path.join(cluster.dir, "containerd", "socket");
}
