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
};

export function clusterAt(): Cluster {
  // Short: socket names have a limit.
  const dir = "/var/tmp/sluice-cluster";
  return {
    ...{ node: "node-1", dir, bin: kubernetesFolder(), kubeconfig: path.join(dir, "admin.conf") },
    ...{ netns: "/run/netns/sluice-cluster", address: "10.99.0.1", pods: "10.244.0.0/24", controlGroup: "/" },
  };
}

/** The second node, which only tests bring up that need one. */
export function secondNode(cluster: Cluster): Cluster {
  return {
    ...cluster,
    ...{ node: "node-2", dir: path.join(cluster.dir, "node-2"), netns: `${cluster.netns}-2` },
    ...{ address: "10.99.0.2", pods: "10.244.1.0/24", controlGroup: "/sluice-node-2" },
  };
}

/** containerd's socket. */
export function socketOf(cluster: Cluster): string {
  return path.join(cluster.dir, "containerd", "socket");
}
