/** Whether a workspace can leave its node, and how much notice its people still have. Pure but for what it remembers. */
import type { V1Node, V1Pod } from "@kubernetes/client-node";
import { isOpenTo } from "./eligible.ts";
import { isLargeEnough } from "./missing.ts";

/**
 * Whether a node could take a pod, as far as node and pod say: what others already use there is known to the scheduler
 * alone, and where its volumes can be used to the cluster.
 */
export function fits(node: V1Node, pod: V1Pod): boolean {
  return isLargeEnough(node, pod) && isOpenTo(node, pod);
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
