import { isSeen, onSight } from "./sight.ts";

type LiveEvent = { topic: string; id: string | null };
type Listener = {
  topics: ReadonlySet<string>;
  /** When it was read what they change, milliseconds since 1970. */
  since: number;
  onEvent: (event: LiveEvent) => void;
};

const listeners = new Set<Listener>();
/** The newest last; older ones only until it is open. */
const streams: EventSource[] = [];
let streamTopics: readonly string[] = [];
let opening: ReturnType<typeof setTimeout> | undefined;

function deliver(event: LiveEvent): void {
  for (const listener of listeners) if (listener.topics.has(event.topic)) listener.onEvent(event);
}

/** So long a page that is out of sight keeps its stream: whoever is back at once has missed nothing. */
const OUT_OF_SIGHT_MS = 2_000;

/**
 * One stream for the whole tab: opened again only when the topics that somebody listens to have changed. What is
 * followed already is followed until the new stream is open; what is new, from when it was read. A page that nobody
 * sees follows nothing and catches up when it is seen again: over HTTP/1.1 a browser has six connections to a host for
 * all of its tabs, and a seventh tab would wait for one for ever.
 */
function sync(): void {
  clearTimeout(opening);
  opening = setTimeout(
    () => follow(isSeen() ? [...new Set([...listeners].flatMap((listener) => [...listener.topics]))].sort() : []),
    isSeen() ? 50 : OUT_OF_SIGHT_MS,
  );
}

function follow(topics: readonly string[]): void {
  const newest = streams.at(-1);
  const followed = newest === undefined || newest.readyState === EventSource.CLOSED ? [] : streamTopics;
  if (topics.join(",") === followed.join(",")) return;
  const fresh = [...listeners].filter((listener) => [...listener.topics].some((topic) => !followed.includes(topic)));
  streamTopics = topics;
  if (topics.length === 0) closeBefore(undefined);
  else streams.push(openStream(topics, fresh.length === 0 ? undefined : Math.min(...fresh.map(({ since }) => since))));
}

function openStream(topics: readonly string[], since: number | undefined): EventSource {
  const from = since === undefined ? "" : `&since=${since}`;
  const stream = new EventSource(`/api/v1/live?topics=${topics.join(",")}${from}`);
  let lost = false;
  stream.onmessage = (message: MessageEvent<string>) => {
    const event = JSON.parse(message.data) as LiveEvent;
    deliver(event);
  };
  stream.onopen = () => {
    closeBefore(stream);
    // What happened while the stream was down was not heard.
    if (lost) for (const topic of topics) deliver({ topic, id: null });
    lost = false;
  };
  stream.onerror = () => {
    lost = true;
  };
  return stream;
}

/** Closes the streams that are older than this one. */
function closeBefore(stream: EventSource | undefined): void {
  const keep = stream === undefined ? streams.length : streams.indexOf(stream);
  for (const older of streams.splice(0, Math.max(keep, 0))) older.close();
}

/** Calls `onEvent` for each change of its topics, in the tab's one stream, until the returned function is called. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  sync();
  const unsubscribe = onSight(() => sync());
  return () => {
    listeners.delete(listener);
    unsubscribe();
    sync();
  };
}
