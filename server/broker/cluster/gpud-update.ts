/** Which gpud of a DaemonSet is to be replaced next, after its chart or image changed. */
import type { V1ControllerRevision, V1Pod } from "@kubernetes/client-node";
import { isReady } from "#server/launchers/kubernetes/states.ts";

const HASH = "controller-revision-hash";

/** `wait`: one is on its way, and the next one's turn comes when it is ready; undefined: all are as they should be. */
export type NextUpdate = "wait" | { pod: V1Pod; nodeName: string } | undefined;

/**
 * One at a time, by the names of the nodes; a new version that does not come up is not brought to more nodes. What is on
 * a node that does not answer says nothing of a version, and is looked at when the node is back.
 */
export function nextUpdate(
  daemonSet: string,
  pods: readonly V1Pod[],
  revisions: readonly V1ControllerRevision[],
  /** The nodes that answer, and of them the one whose gpud was the last to go. */
  { nodes, updating }: { nodes: ReadonlySet<string>; updating?: string | undefined },
): NextUpdate {
  const newest = revisions
    .filter(isOf(daemonSet))
    .reduce<V1ControllerRevision | undefined>(
      (best, one) => (best === undefined || one.revision > best.revision ? one : best),
      undefined,
    );
  const hash = newest?.metadata?.labels?.[HASH];
  if (hash === undefined) return undefined;
  const ours = pods.filter(isOf(daemonSet)).filter(({ spec }) => nodes.has(spec?.nodeName ?? ""));
  // Between the end of the old one and the making of the new one there is none.
  if (updating !== undefined && nodes.has(updating) && !ours.some(({ spec }) => spec?.nodeName === updating))
    return "wait";
  const isCurrent = (pod: V1Pod) => pod.metadata?.labels?.[HASH] === hash;
  if (ours.some((pod) => pod.metadata?.deletionTimestamp !== undefined || (isCurrent(pod) && !isReady(pod))))
    return "wait";
  const [next] = ours
    .flatMap((pod) => (isCurrent(pod) || pod.spec?.nodeName === undefined ? [] : { pod, nodeName: pod.spec.nodeName }))
    // One that was begun is gone on with, also when another of an earlier name answers again.
    .sort(
      (a, b) =>
        Number(b.nodeName === updating) - Number(a.nodeName === updating) || a.nodeName.localeCompare(b.nodeName),
    );
  return next;
}

type Owned = { metadata?: { ownerReferences?: { kind: string; name: string }[] } };

const isOf = (daemonSet: string) => (object: Owned) =>
  object.metadata?.ownerReferences?.some(({ kind, name }) => kind === "DaemonSet" && name === daemonSet) ?? false;
