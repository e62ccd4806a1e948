import { setTimeout as sleep } from "node:timers/promises";

/** What comes within that time, else undefined; nothing waits on when it has come. */
export async function within<T>(ms: number, awaited: Promise<T>): Promise<T | undefined> {
  const done = new AbortController();
  const late = sleep(ms, undefined, { signal: done.signal }).catch(() => undefined);
  try {
    return await Promise.race([awaited, late]);
  } finally {
    done.abort();
  }
}
