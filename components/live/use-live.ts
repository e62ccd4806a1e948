import { useEffect, useRef } from "react";
import { listen } from "./stream.ts";

/** Calls `onEvent` for each change of these topics, comma-separated, while the component is on the page. */
export function useLive(topics: string, since: number, onEvent: () => void): void {
  const read = useRef(since);
  useEffect(() => listen({ topics: new Set(topics.split(",")), since: read.current, onEvent }), [topics, onEvent]);
}
