import { Timeline, type TimelineRow } from "#components/chart/timeline.tsx";
import { formatAmount, formatDuration, formatExact } from "#components/format.ts";
import { Card, Section } from "#components/ui/page.tsx";
import { formatWait } from "./likely-wait.ts";
import type { QueueRow } from "./queue-table.tsx";

/** Maximum rows. The queue table lists every request. */
const ROWS = 12;

/** Waiting time and estimated grant of the first requests. */
export function QueueTimeline({ rows, now, zone }: { rows: QueueRow[]; now: Date; zone: string }) {
  const at = now.getTime();
  const shown = rows.slice(0, ROWS).map((row) => rowOf(row, at, zone));
  const times = shown.flatMap(({ spans }) => spans.flatMap(({ from, to }) => [from, to]));
  if (times.length === 0) return null;
  return (
    <Section title="Waiting times" detail="So far, and estimated until the grant">
      <Card className="px-3.5 py-3">
        <Timeline
          label="Waiting requests over time"
          rows={shown}
          {...{ from: Math.min(...times), to: Math.max(at + 60_000, ...times), now: at, zone }}
        />
      </Card>
    </Section>
  );
}

/** One request: what it has waited, then until the soonest grant, and until the likely one. */
export function rowOf(row: QueueRow, now: number, zone: string): TimelineRow {
  const clock = (at: number) => formatExact(new Date(at).toISOString(), zone).slice(0, 16);
  const since = Math.min(now, Date.parse(row.waitingSince));
  const name = `${formatAmount(row.milli)} ${row.gpuType}, ${row.userName}`;
  const waited = `waits for ${formatDuration(now - since)}`;
  const past = { from: since, to: now, look: "past" as const, title: `waiting since ${clock(since)}` };
  if (row.likelySeconds === null) return { id: row.requestId, name, text: `${waited}, no estimate`, spans: [past] };
  const { likelySeconds, soonestSeconds } = row;
  const likely = now + likelySeconds * 1000;
  const soonest = soonestSeconds === null ? likely : Math.min(likely, now + soonestSeconds * 1000);
  const isRange = soonest < likely;
  return {
    id: row.requestId,
    name,
    text: `${waited}, likely in ${formatWait({ likelySeconds, soonestSeconds })}`,
    spans: [
      past,
      { from: now, to: soonest, look: "sure", title: `${isRange ? "soonest" : "likely"} grant ${clock(soonest)}` },
      ...(isRange
        ? [{ from: soonest, to: likely, look: "maybe" as const, title: `likely grant by ${clock(likely)}` }]
        : []),
    ],
  };
}
