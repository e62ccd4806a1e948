import { setTimeout as sleep } from "node:timers/promises";

/** What comes within that time, else what `late` gives or throws; nothing waits on when it has come. */
export async function within<T, L>(ms: number, awaited: Promise<T>, late: () => L | Promise<L>): Promise<T | L> {
  const done = new AbortController();
  try {
    return await Promise.race([awaited, sleep(ms, undefined, { signal: done.signal }).then(late)]);
  } finally {
    done.abort();
  }
}
