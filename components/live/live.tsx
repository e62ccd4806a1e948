"use client";

import { useRouter } from "next/navigation";
import { useCallback, useEffect } from "react";

type Listener = { topics: ReadonlySet<string>; onEvent: (event: LiveEvent) => void };
type LiveEvent = { topic: string; id: string | null };

const listeners = new Set<Listener>();
let source: EventSource | undefined;
let sourceTopics = "";
let opening: ReturnType<typeof setTimeout> | undefined;

function deliver(event: LiveEvent): void {
  for (const listener of listeners) if (listener.topics.has(event.topic)) listener.onEvent(event);
}

/** One stream for the whole tab: opened again only when the topics that somebody listens to have changed. */
function sync(): void {
  clearTimeout(opening);
  opening = setTimeout(() => {
    const topics = [...new Set([...listeners].flatMap((listener) => [...listener.topics]))].sort().join(",");
    if (topics === sourceTopics && source?.readyState !== EventSource.CLOSED) return;
    source?.close();
    source = undefined;
    sourceTopics = topics;
    if (topics === "") return;
    const stream = new EventSource(`/api/v1/live?topics=${topics}`);
    let lost = false;
    stream.onmessage = (message: MessageEvent<string>) => {
      const event = JSON.parse(message.data) as LiveEvent;
      deliver(event);
    };
    // What happened while the stream was down was not heard.
    stream.onopen = () => {
      if (lost) for (const topic of topics.split(",")) deliver({ topic, id: null });
      lost = false;
    };
    stream.onerror = () => {
      lost = true;
    };
    source = stream;
  }, 50);
}

/** Calls `onEvent` for each change of these topics while the component is on the page. */
function useLive(topics: string, onEvent: (event: LiveEvent) => void): void {
  useEffect(() => {
    const listener = { topics: new Set(topics.split(",")), onEvent };
    listeners.add(listener);
    sync();
    return () => {
      listeners.delete(listener);
      sync();
    };
  }, [topics, onEvent]);
}

let refreshTimer: ReturnType<typeof setTimeout> | undefined;
let refreshedAt = 0;

/** Renders the page again on the server when one of the topics has changed, at most three times a second. */
export function LiveRefresh({ topics }: { topics: string }) {
  const router = useRouter();
  const refresh = useCallback(() => {
    if (refreshTimer !== undefined) return;
    const wait = Math.max(20, 333 - (Date.now() - refreshedAt));
    refreshTimer = setTimeout(() => {
      refreshTimer = undefined;
      refreshedAt = Date.now();
      router.refresh();
    }, wait);
  }, [router]);
  useLive(topics, refresh);
  return null;
}
