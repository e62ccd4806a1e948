/** Whether a workspace can leave its node, and how much notice its people still have. Pure but for what it remembers. */
import type {
  V1Node,
  V1NodeSelector,
  V1NodeSelectorRequirement,
  V1Pod,
  V1Taint,
  V1Toleration,
} from "@kubernetes/client-node";
import { readAmount } from "./amount.ts";
import { answers } from "./states.ts";

/**
 * Whether a node could take a pod, as far as node and pod say: what others already use there is known to the scheduler
 * alone. `volumes`: where the pod's volumes can be used, undefined for anywhere.
 */
export function fits(node: V1Node, pod: V1Pod, volumes: readonly (V1NodeSelector | undefined)[] = []): boolean {
  const labels = node.metadata?.labels ?? {};
  const selected = Object.entries(pod.spec?.nodeSelector ?? {}).every(([key, value]) => labels[key] === value);
  const tolerated = (node.spec?.taints ?? []).every((taint) => isTolerated(taint, pod.spec?.tolerations ?? []));
  const open = answers(node) && node.spec?.unschedulable !== true;
  return open && selected && tolerated && hasRoom(node, pod) && volumes.every((where) => admits(where, node));
}

function isTolerated({ key, value, effect }: V1Taint, tolerations: readonly V1Toleration[]): boolean {
  if (effect === "PreferNoSchedule") return true;
  return tolerations.some((one) => {
    if (one.effect !== undefined && one.effect !== effect) return false;
    if (one.operator === "Exists") return one.key === undefined || one.key === key;
    return one.key === key && (one.value ?? "") === (value ?? "");
  });
}

function hasRoom(node: V1Node, pod: V1Pod): boolean {
  const there = node.status?.allocatable ?? {};
  const asked = (name: string) =>
    (pod.spec?.containers ?? []).reduce((sum, { resources }) => sum + readAmount(resources?.requests?.[name]), 0);
  return ["cpu", "memory"].every((name) => asked(name) <= readAmount(there[name]));
}

/** Whether a volume can be used on a node: one of its terms has to hold, and of that everything. */
export function admits(selector: V1NodeSelector | undefined, node: V1Node): boolean {
  if (selector === undefined) return true;
  const labels = node.metadata?.labels ?? {};
  const fields = { "metadata.name": node.metadata?.name ?? "" };
  return selector.nodeSelectorTerms.some(
    ({ matchExpressions = [], matchFields = [] }) =>
      matchExpressions.every((one) => holds(one, labels)) && matchFields.every((one) => holds(one, fields)),
  );
}

function holds({ key, operator, values = [] }: V1NodeSelectorRequirement, of: Record<string, string>): boolean {
  const value = of[key];
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
      return Number(value) > Number(values[0]);
    case "Lt":
      return Number(value) < Number(values[0]);
    default:
      return false;
  }
}

/** So long after a node was no longer to be left its people's notice is remembered. */
const REMEMBER_MS = 5 * 60_000;

/** How much notice people still have, where a node is left, stays after all, and is left again. */
export class MoveNotices {
  readonly #noticeMs: number;
  /** How long they were told that it is left, before the time from which they are told now, or were told last. */
  readonly #told = new Map<string, { forMs: number; since: number | undefined; seen: number }>();

  constructor(noticeMs: number) {
    this.#noticeMs = noticeMs;
  }

  /** What is left from the beginning of the present telling; undefined while it is not left. `key`: workspace and node. */
  left(key: string, leaving: boolean, now: number): number | undefined {
    for (const [old, { since, seen }] of this.#told)
      if (since === undefined && now - seen > REMEMBER_MS) this.#told.delete(old);
    const known = this.#told.get(key);
    if (!leaving) {
      if (known?.since !== undefined)
        this.#told.set(key, { forMs: known.forMs + (now - known.since), since: undefined, seen: now });
      return undefined;
    }
    const { forMs = 0, since = now } = known ?? {};
    this.#told.set(key, { forMs, since, seen: now });
    return Math.max(0, this.#noticeMs - forMs);
  }

  /** What is gone is left by nobody. */
  forget(key: string): void {
    this.#told.delete(key);
  }
}
