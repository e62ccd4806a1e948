"use client";

import { formatClock, formatDuration, formatExact, formatRelative } from "#components/format.ts";
import { useNow } from "#components/live/now.ts";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";

/** `12 min ago`, with the exact time on hover. */
export function RelativeTime({ at }: { at: string }) {
  const now = useNow();
  const zone = useTimeZone();
  return (
    <time dateTime={at} title={formatExact(at, zone)} suppressHydrationWarning className="whitespace-nowrap">
      {formatRelative(Date.parse(at), now)}
    </time>
  );
}

/** The exact time, for records. */
export function ExactTime({ at }: { at: string }) {
  const exact = formatExact(at, useTimeZone());
  return (
    <time dateTime={at} title={at} className="figures inline-flex flex-wrap gap-x-[0.5ch] sm:flex-nowrap">
      <span className="whitespace-nowrap">{exact.slice(0, 10)}</span>
      <span className="whitespace-nowrap">{exact.slice(11)}</span>
    </time>
  );
}

/** How long something has run, or took when it has ended: `0:07`. */
export function Elapsed({ from, to }: { from: string; to?: string | null }) {
  const now = useNow();
  const zone = useTimeZone();
  const end = to ? Date.parse(to) : now;
  return (
    <time title={`since ${formatExact(from, zone)}`} suppressHydrationWarning className="figures whitespace-nowrap">
      {formatClock(end - Date.parse(from))}
    </time>
  );
}

/** How long ago, as a length: `12 min`. */
export function Age({ from }: { from: string }) {
  const now = useNow();
  const zone = useTimeZone();
  return (
    <time
      dateTime={from}
      title={`since ${formatExact(from, zone)}`}
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
  const zone = useTimeZone();
  return (
    <time
      dateTime={until}
      title={`until ${formatExact(until, zone)}`}
      suppressHydrationWarning
      className="figures whitespace-nowrap"
    >
      {formatDuration(Date.parse(until) - now)}
    </time>
  );
}
