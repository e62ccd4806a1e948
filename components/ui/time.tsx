"use client";

import { formatClock, formatDuration, formatExact, formatRelative } from "#components/format.ts";
import { useNow } from "#components/live/now.ts";

/** `12 min ago`, with the exact time on hover. */
export function RelativeTime({ at }: { at: string }) {
  const now = useNow();
  return (
    <time dateTime={at} title={formatExact(at)} suppressHydrationWarning className="whitespace-nowrap">
      {formatRelative(Date.parse(at), now)}
    </time>
  );
}

/** The exact time, for records. */
export function ExactTime({ at }: { at: string }) {
  return (
    <time dateTime={at} title={at} className="figures inline-flex flex-wrap gap-x-[0.5ch] sm:flex-nowrap">
      <span className="whitespace-nowrap">{formatExact(at).slice(0, 10)}</span>
      <span className="whitespace-nowrap">{formatExact(at).slice(11)}</span>
    </time>
  );
}

/** How long something has run, or took when it has ended: `0:07`. */
export function Elapsed({ from, to }: { from: string; to?: string | null }) {
  const now = useNow();
  const end = to ? Date.parse(to) : now;
  return (
    <time title={`since ${formatExact(from)}`} suppressHydrationWarning className="figures whitespace-nowrap">
      {formatClock(end - Date.parse(from))}
    </time>
  );
}

/** How long ago, as a length: `12 min`. */
export function Age({ from }: { from: string }) {
  const now = useNow();
  return (
    <time
      dateTime={from}
      title={`since ${formatExact(from)}`}
      suppressHydrationWarning
      className="figures whitespace-nowrap"
    >
      {formatDuration(now - Date.parse(from))}
    </time>
  );
}

/** What is left until an end: `48 min`. */
export function Remaining({ until }: { until: string }) {
  const now = useNow();
  return (
    <time
      dateTime={until}
      title={`until ${formatExact(until)}`}
      suppressHydrationWarning
      className="figures whitespace-nowrap"
    >
      {formatDuration(Date.parse(until) - now)}
    </time>
  );
}
