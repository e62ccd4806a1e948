/** How much a node misses for a pod that finds no room: what it can give, without what pods there ask for. Pure. */
import type { V1Node, V1Pod } from "@kubernetes/client-node";
import { readAmount } from "./amount.ts";
import { isOpenTo, type Places } from "./eligible.ts";
import { requestOf, requestsOf } from "./pod-requests.ts";

/** What pods ask for, by their nodes and then by resource. */
export type Taken = Map<string, Map<string, number>>;

/** What else than the nodes decides whether a pod has room; `volumes`: where its own can be used. */
export type Room = { taken: readonly Taken[]; volumes: Places };

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

/**
 * Of the named resources those that lack on the node that lacks least for the pod, among those that would take it. None
 * where a node lacks nothing: room has come since they were named, or something else keeps the pod off.
 */
export function missingOf(pod: V1Pod, names: readonly string[], nodes: readonly V1Node[], room: Room): Missing[] {
  const open = nodes.filter((node) => isOpenTo(node, pod, room.volumes));
  const each = open.map((node) => names.flatMap((name) => lackOf(node, { name, asked: requestOf(pod, name), room })));
  const [least] = each.sort((a, b) => weightOf(a, pod) - weightOf(b, pod));
  return least ?? [];
}

function lackOf(node: V1Node, { name, asked, room }: { name: string; asked: number; room: Room }): Missing[] {
  const taken = room.taken.reduce((sum, of) => sum + (of.get(node.metadata?.name ?? "")?.get(name) ?? 0), 0);
  const free = exact(readAmount(node.status?.allocatable?.[name]) - taken);
  const missing = exact(asked - free);
  return asked > 0 && missing > 0 ? [{ name, free, missing }] : [];
}

/** Of several resources each counts by the part of what is asked that is missing. */
function weightOf(missing: readonly Missing[], pod: V1Pod): number {
  return missing.reduce((sum, each) => sum + each.missing / requestOf(pod, each.name), 0);
}

/** Amounts are whole thousandths; sums of them as fractions are not. */
const exact = (amount: number): number => Math.round(amount * 1000) / 1000;
