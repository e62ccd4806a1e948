import type { LiveEvent, LiveTopic } from "#server/live.ts";
import { subscribe } from "#server/live.ts";

/**
 * Live events as an iterable: what comes while the reader is busy waits, each topic and id at most once. Ends when
 * `signal` aborts. `everyMs` wakes the reader with `undefined` although nothing was heard; `as` says how the reader is
 * told of an event, `undefined` not at all. `since`: what may have changed since then comes first.
 */
export async function* liveEvents(
  topics: readonly LiveTopic[],
  signal: AbortSignal,
  options: { everyMs?: number; as?: (event: LiveEvent) => LiveEvent | undefined; since?: number } = {},
): AsyncGenerator<LiveEvent | undefined> {
  const waiting = new Map<string, LiveEvent>();
  let wake: () => void = () => undefined;
  const hear = (heard: LiveEvent) => {
    const event = options.as === undefined ? heard : options.as(heard);
    if (event === undefined) return;
    waiting.set(`${event.topic} ${event.id}`, event);
    wake();
  };
  const unsubscribe = subscribe(topics, hear, options.since);
  const onAbort = () => wake();
  signal.addEventListener("abort", onAbort);
  try {
    while (!signal.aborted) {
      const [first] = waiting;
      if (first !== undefined) {
        waiting.delete(first[0]);
        yield first[1];
        continue;
      }
      const woken = await new Promise<boolean>((resolve) => {
        const timer = options.everyMs === undefined ? undefined : setTimeout(() => resolve(false), options.everyMs);
        wake = () => {
          clearTimeout(timer);
          resolve(true);
        };
      });
      if (!woken) yield undefined;
    }
  } finally {
    unsubscribe();
    signal.removeEventListener("abort", onAbort);
  }
}
