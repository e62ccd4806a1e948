"use client";

import { useEffect, useRef, useState } from "react";
import { useSeen } from "#components/live/sight.ts";
import { WorkspaceLog } from "#components/workspace/workspace-log.tsx";
import type { WorkspaceEvent } from "#server/contracts/workspace.ts";

/** So many lines that came while the page is open are kept. */
const KEPT_LINES = 2000;

/**
 * The log of a workspace with what comes after it, line by line: to follow it is what has a running one's output read.
 * While nobody sees it, it is not followed, so that the browser's few connections are left to other tabs.
 */
export function FollowedLog({ id, events, zone }: { id: string; events: WorkspaceEvent[]; zone: string }) {
  const newest = events.at(-1)?.seq ?? 0;
  const from = useRef(newest);
  const [streamed, setStreamed] = useState<WorkspaceEvent[]>([]);
  const seen = useSeen();
  useEffect(() => {
    if (!seen) return;
    const stream = new EventSource(`/api/v1/workspaces/${id}/events?follow&after=${from.current}`);
    stream.addEventListener("workspace-event", ({ data }: MessageEvent<string>) => {
      const event = JSON.parse(data) as WorkspaceEvent;
      from.current = event.seq;
      setStreamed((known) => [...known.slice(-KEPT_LINES), event]);
    });
    return () => stream.close();
  }, [id, seen]);
  // The page itself is read anew at each step.
  return <WorkspaceLog events={[...events, ...streamed.filter(({ seq }) => seq > newest)]} zone={zone} />;
}
