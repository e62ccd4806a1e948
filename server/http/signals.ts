import { type FoundTopic, foundTopic } from "#server/contracts/live.ts";
import { foundTopics } from "#server/http/found-topics.ts";
import type { LiveEvent, LiveTopic } from "#server/live.ts";
import { subscribe } from "#server/live.ts";

/** What is heard of a topic, whether somebody told of it or the portal has found it. */
export type Signal = LiveEvent | { topic: FoundTopic; id: string | null };

/** Events that wait for a reader. Above this number, one event for each topic replaces them, with `id: null`. */
const MOST_WAITING = 1_000;

type Options = {
  /** Wakes the reader with `undefined` although nothing was heard. */
  everyMs?: number;
  /** How the reader is told of an event; `undefined`: not at all. */
  as?: (signal: Signal) => Signal | undefined;
  /** What may have changed since then comes first. */
  since?: number | undefined;
  /** Whose `mine` is. */
  userId?: string | undefined;
};

/**
 * Live events as an iterable, from this call on. Events that arrive while the reader is busy are queued, each topic and
 * id at most once, and `MOST_WAITING` in all. Ends when `signal` aborts; a reader that stops earlier calls `return`.
 */
export function liveEvents(
  topics: readonly Signal["topic"][],
  signal: AbortSignal,
  options: Options = {},
): AsyncIterableIterator<Signal | undefined> & { return: () => Promise<IteratorReturnResult<undefined>> } {
  const waiting = new Map<string, Signal>();
  let isEnded = false;
  let wake: () => void = () => undefined;
  let unsubscribe: () => void = () => undefined;
  const end = () => {
    if (isEnded) return;
    isEnded = true;
    unsubscribe();
    signal.removeEventListener("abort", end);
    wake();
  };
  const hear = (heard: Signal) => {
    const event = options.as === undefined ? heard : options.as(heard);
    if (event === undefined) return;
    const key = `${event.topic} ${event.id}`;
    if (waiting.size >= MOST_WAITING && event.id !== null && !waiting.has(key)) {
      waiting.clear();
      for (const topic of topics) hear({ topic, id: null });
      return;
    }
    waiting.set(key, event);
    wake();
  };
  if (signal.aborted) isEnded = true;
  else {
    unsubscribe = subscribeAll(topics, hear, options);
    signal.addEventListener("abort", end);
  }

  const read = async (): Promise<IteratorResult<Signal | undefined, undefined>> => {
    for (;;) {
      if (isEnded) return { done: true, value: undefined };
      const [first] = waiting;
      if (first !== undefined) {
        waiting.delete(first[0]);
        return { done: false, value: first[1] };
      }
      const isWoken = await new Promise<boolean>((resolve) => {
        const timer = options.everyMs === undefined ? undefined : setTimeout(() => resolve(false), options.everyMs);
        wake = () => {
          clearTimeout(timer);
          resolve(true);
        };
      });
      if (!isWoken) return { done: false, value: undefined };
    }
  };
  return {
    next: read,
    return: () => {
      end();
      return Promise.resolve({ done: true, value: undefined });
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

function subscribeAll(
  topics: readonly Signal["topic"][],
  hear: (signal: Signal) => void,
  { since, userId: who }: Options,
): () => void {
  const isFound = (topic: Signal["topic"]): topic is FoundTopic => foundTopic.safeParse(topic).success;
  const told = topics.filter((topic): topic is LiveTopic => !isFound(topic));
  const ends = [
    subscribe(told, hear, since),
    ...topics
      .filter(isFound)
      .map((topic) => foundTopics()[topic].subscribe({ who, since, onTold: (id) => hear({ topic, id }) })),
  ];
  return () => {
    for (const end of ends) end();
  };
}
