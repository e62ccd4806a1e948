/** Wakes long polls when the row they wait for changes, in whichever process it was changed. */
import type { Live } from "#server/live.ts";
import type { Watch, Watcher } from "#server/services/lease/watch.ts";

export type Watchers = {
  /** A watcher for one client: when `signal` aborts, what waits with it ends with an error. */
  watch: (signal: AbortSignal) => Watcher;
  /** Open watches. */
  size: () => number;
  close: () => void;
};

/** One subscription for all watches of this process. */
export function createWatchers(live: Live): Watchers {
  const watches = new Map<string, Set<() => void>>();
  const closing = new Set<() => void>();
  const unsubscribe = live.subscribe(["lease"], ({ id }) => {
    const woken = id === null ? [...watches.values()].flatMap((set) => [...set]) : [...(watches.get(id) ?? [])];
    for (const wake of woken) wake();
  });

  const watchWhile = (signal: AbortSignal, id: string): Watch => {
    let pending = false;
    let resolve: ((changed: boolean) => void) | undefined;
    const wake = () => {
      pending = true;
      resolve?.(true);
    };
    const set = watches.get(id) ?? new Set();
    watches.set(id, set.add(wake));
    closing.add(wake);
    signal.addEventListener("abort", wake);
    return {
      changed: async (ms) => {
        signal.throwIfAborted();
        if (!pending) {
          await new Promise<boolean>((done) => {
            const timer = setTimeout(() => done(false), Math.max(0, ms));
            resolve = (changed) => {
              clearTimeout(timer);
              done(changed);
            };
          });
          resolve = undefined;
          signal.throwIfAborted();
        }
        const changed = pending;
        pending = false;
        return changed;
      },
      close: () => {
        signal.removeEventListener("abort", wake);
        set.delete(wake);
        closing.delete(wake);
        if (set.size === 0) watches.delete(id);
      },
    };
  };

  return {
    watch: (signal) => (id) => watchWhile(signal, id),
    size: () => closing.size,
    close: () => {
      unsubscribe();
      for (const wake of closing) wake();
    },
  };
}
