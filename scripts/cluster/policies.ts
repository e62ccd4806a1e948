/**
 * Enforces NetworkPolicies on the test cluster's first node, for the tests that need it: the bridge plugin of its pods
 * knows none. Compiled from the published module of sigs.k8s.io/kube-network-policies (`policies/`).
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster } from "#scripts/cluster/place.ts";
import { run, startService } from "#scripts/lib/processes.ts";

const QUEUE = "101";
/** The first packets of connections, when they are about to leave the node's network: forwarded ones, and of its own those that no root process sends. */
const HANDED_OVER = [
  ...["POSTROUTING", "-m", "conntrack", "--ctstate", "NEW", "-m", "owner", "!", "--uid-owner", "0"],
  ...["-j", "NFQUEUE", "--queue-num", QUEUE],
];

/** Starts it in the network of whoever calls, which has to be the node's; gives what ends it. */
export async function enforcePolicies(cluster: Cluster, program: string): Promise<() => Promise<void>> {
  const service = await startService("policies", {
    command: program,
    args: [cluster.kubeconfig, cluster.node, QUEUE],
    env: process.env,
    logFile: path.join(cluster.dir, "log", "policies"),
    ready: (line) => line.includes("Syncing nftables rules"),
  });
  while (!(await isListening())) await sleep(50);
  // Of pods of one node, too, which the bridge hands to one another.
  await run("sysctl", ["-qw", "net.bridge.bridge-nf-call-iptables=1"]);
  await run("iptables", ["-t", "mangle", "-A", ...HANDED_OVER]);
  return async () => {
    await run("iptables", ["-t", "mangle", "-D", ...HANDED_OVER]);
    await service.stop();
  };
}

/** Whether packets that are handed over are taken. */
async function isListening(): Promise<boolean> {
  const queues = await readFile("/proc/net/netfilter/nfnetlink_queue", "utf8");
  return queues.split("\n").some((line) => line.trim().startsWith(`${QUEUE} `));
}
