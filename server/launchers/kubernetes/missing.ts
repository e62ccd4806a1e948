/** How much a node misses for a pod: of all that it can give, or of that without what pods there ask for. Pure. */
import type { V1Node, V1Pod } from "@kubernetes/client-node";
import { readAmount } from "./amount.ts";
import { isOpenTo, type Places } from "./eligible.ts";
import { requestOf, requestsOf } from "./pod-requests.ts";

/** What pods ask for, by their nodes and then by resource. */
export type Taken = Map<string, Map<string, number>>;

/** What else than the nodes decides whether a pod has room; `volumes`: where its own can be used. */
export type Room = { taken: Taken; volumes: Places };

/** A resource of which a node has too little; `free` is less than nothing where the node has become smaller. */
export type Missing = { name: string; free: number; missing: number };

/** Adds the pods that hold something on a node: those that are there, also while they end, and have not ended. */
export function addTo(taken: Taken, pods: readonly V1Pod[]): Taken {
  for (const pod of pods) {
    const node = pod.spec?.nodeName;
    if (!node || pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed") continue;
    const there = taken.get(node) ?? new Map<string, number>();
    for (const [name, amount] of requestsOf(pod)) there.set(name, (there.get(name) ?? 0) + amount);
    taken.set(node, there);
  }
  return taken;
}

/** Whether a node could give a pod all that it asks for, if it had nobody else. */
export function isLargeEnough(node: V1Node, pod: V1Pod): boolean {
  return lacksOf(node, requestsOf(pod)).length === 0;
}

/**
 * What lacks on the node that lacks least for the pod, if nobody else were there; `free` is then all that it can give.
 * None where one of the nodes is large enough, or there are no nodes.
 */
export function beyondAll(pod: V1Pod, nodes: readonly V1Node[]): Missing[] {
  return leastOf(nodes, requestsOf(pod));
}

/**
 * Of the named resources those that lack on the node that lacks least for the pod, among those that would take it. None
 * where a node lacks nothing: room has come since they were named, or something else keeps the pod off.
 */
export function missingOf(pod: V1Pod, names: readonly string[], nodes: readonly V1Node[], room: Room): Missing[] {
  const open = nodes.filter((node) => isOpenTo(node, pod, room.volumes));
  return leastOf(open, new Map(names.map((name) => [name, requestOf(pod, name)])), room.taken);
}

/** Of several resources each counts by the part of what is asked that is missing. */
function leastOf(nodes: readonly V1Node[], asked: ReadonlyMap<string, number>, taken?: Taken): Missing[] {
  const weightOf = (lacks: readonly Missing[]) =>
    lacks.reduce((sum, { name, missing }) => sum + missing / (asked.get(name) ?? missing), 0);
  const [least] = nodes.map((node) => lacksOf(node, asked, taken)).sort((a, b) => weightOf(a) - weightOf(b));
  return least ?? [];
}

/** Of what a node does not name it has nothing. */
function lacksOf(node: V1Node, asked: ReadonlyMap<string, number>, taken?: Taken): Missing[] {
  const there = taken?.get(node.metadata?.name ?? "");
  return [...asked].flatMap(([name, amount]) => {
    const free = exact(readAmount(node.status?.allocatable?.[name]) - (there?.get(name) ?? 0));
    const missing = exact(amount - free);
    return amount > 0 && missing > 0 ? [{ name, free, missing }] : [];
  });
}

/** Amounts are whole thousandths; sums of them as fractions are not. */
const exact = (amount: number): number => Math.round(amount * 1000) / 1000;
