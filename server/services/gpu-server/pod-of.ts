/** GPU servers that run in pods of Sluice's cluster: in which, by the token of their account there. */
import { SluiceError, violatedIndex } from "#server/errors.ts";
import type { ClusterAccount } from "#server/launchers/kubernetes/cluster-account.ts";
import { clusterSettings } from "#server/launchers/kubernetes/settings.ts";

/**
 * The cluster's account that a token is of; undefined where Sluice runs on no cluster with GPU servers of its own, and for
 * other tokens. Throws when the cluster does not answer.
 */
export async function accountOf(token: string): Promise<ClusterAccount | undefined> {
  const settings = await clusterSettings();
  if (settings === undefined) return undefined;
  const { gpuServerAccount } = await import("#server/launchers/kubernetes/cluster-account.ts");
  return await gpuServerAccount(settings, token);
}

/** What a row of `gpu_servers` has of an account. */
export function placeOf(account: ClusterAccount): { nodeName: string | null; podUid: string | null } {
  return { nodeName: account.node ?? null, podUid: account.pod?.uid ?? null };
}

/** Writes a server's place, and says so in words when its pod has another server in the pool. */
export async function inOnePod<T>(account: ClusterAccount | undefined, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (violatedIndex(error) !== "gpu_servers_pod") throw error;
    throw new SluiceError(
      "conflict",
      `The pod ${account?.pod?.name ?? ""} has another GPU server in the pool. Delete the pod, and the one in its place joins.`,
    );
  }
}
