"use client";

import { useRouter } from "next/navigation";
import { useCallback, useEffect, useRef } from "react";
import { isSeen, onSight } from "./sight.ts";

type Listener = { topics: ReadonlySet<string>; since: number; onEvent: (event: LiveEvent) => void };
type LiveEvent = { topic: string; id: string | null };

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

/** Calls `onEvent` for each change of these topics while the component is on the page. */
function useLive(topics: string, since: number, onEvent: (event: LiveEvent) => void): void {
  const read = useRef(since);
  useEffect(() => {
    const listener = { topics: new Set(topics.split(",")), since: read.current, onEvent };
    listeners.add(listener);
    sync();
    const unsubscribe = onSight(() => sync());
    return () => {
      listeners.delete(listener);
      unsubscribe();
      sync();
    };
  }, [topics, onEvent]);
}

let refreshTimer: ReturnType<typeof setTimeout> | undefined;
/** When the page is rendered again; whoever wants it sooner moves it. */
let refreshDue = Number.POSITIVE_INFINITY;
let refreshedAt = 0;

/** What [`LiveRefresh`] is in the browser: `seconds` after the last refresh at the soonest, together with what is due. */
export function Follow({ topics, seconds, since }: { topics: string; seconds: number; since: number }) {
  const router = useRouter();
  const refresh = useCallback(() => {
    const due = Math.max(Date.now() + 20, refreshedAt + seconds * 1000);
    if (refreshDue <= due) return;
    clearTimeout(refreshTimer);
    refreshDue = due;
    refreshTimer = setTimeout(() => {
      refreshDue = Number.POSITIVE_INFINITY;
      refreshedAt = Date.now();
      router.refresh();
    }, due - Date.now());
  }, [router, seconds]);
  useLive(topics, since, refresh);
  return null;
}
