import { Timeline } from "#components/chart/timeline.tsx";
import { formatAmount, formatExact } from "#components/format.ts";
import { Card } from "#components/ui/page.tsx";
import type { ReservationView } from "#server/contracts/sharing.ts";

const WEEK_MS = 7 * 24 * 3_600_000;

type Reservation = ReservationView & { teamName: string };

/** Reservations of the next seven days, one line per team and GPU type. Empty without reservations. */
export function ReservationWeek({ reservations, now, zone }: { reservations: Reservation[]; now: Date; zone: string }) {
  const rows = weekOf(reservations, now.getTime(), zone);
  if (rows.length === 0) return null;
  const from = now.getTime();
  return (
    <Card className="mb-3 px-3.5 py-3">
      <h3 className="mb-2 text-sm text-ink-2">The next seven days</h3>
      <Timeline label="Reservations of the next seven days" {...{ rows, from, to: from + WEEK_MS, now: from, zone }} />
    </Card>
  );
}

/** The lines of the week from `now` on: reservations of one team for one GPU type stand on one. */
export function weekOf(reservations: readonly Reservation[], now: number, zone: string) {
  const near = reservations.filter(
    ({ startsAt, endsAt }) => Date.parse(endsAt) > now && Date.parse(startsAt) < now + WEEK_MS,
  );
  return [...Map.groupBy(near, ({ teamId, gpuType }) => `${teamId} ${gpuType}`)].map(([id, same]) => ({
    id,
    name: `${same[0]?.teamName ?? ""}, ${same[0]?.gpuType ?? ""}`,
    text: same.map(({ milli, startsAt }) => `${formatAmount(milli)} from ${minuteOf(startsAt, zone)}`).join("; "),
    spans: same.map(({ startsAt, endsAt }) => ({
      ...{ from: Math.max(now, Date.parse(startsAt)), to: Math.min(now + WEEK_MS, Date.parse(endsAt)) },
      look: "sure" as const,
    })),
  }));
}

/** `2026-11-24 10:00`; the axis names no zone, the table below does. */
const minuteOf = (iso: string, zone: string) => formatExact(iso, zone).slice(0, 16);
