import { DAY, DAYS, type WeekDay } from "#components/calendar/week.ts";
import { WeekGrid } from "#components/calendar/week-grid.tsx";
import { formatAmount } from "#components/format.ts";
import { Card } from "#components/ui/page.tsx";
import type { ReservationView } from "#server/contracts/sharing.ts";
import { clockIn, offsetLabel } from "#server/contracts/time-zone.ts";

const MINUTE_MS = 60_000;

type Reservation = ReservationView & { teamName: string };

/** Reservations of today and the next six days. Empty without reservations. */
export function ReservationWeek({ reservations, now, zone }: { reservations: Reservation[]; now: Date; zone: string }) {
  const days = weekOf(reservations, now.getTime(), zone);
  if (days.every(({ blocks }) => blocks.length === 0)) return null;
  return (
    <Card className="mb-3 px-4 py-3.5">
      <h3 className="mb-2.5 text-sm text-ink-2">Today and the next six days, {offsetLabel(zone, now.getTime())}</h3>
      <WeekGrid label="Reservations of today and the next six days" days={days} />
    </Card>
  );
}

/** Seven days from today on, as the clocks of `zone` show them. */
export function weekOf(reservations: readonly Reservation[], now: number, zone: string): WeekDay[] {
  const minuteIn = (at: number) => Math.floor(Date.parse(`${clockIn(zone, at)}Z`) / MINUTE_MS);
  const today = Math.floor(minuteIn(now) / DAY);
  const spans = reservations
    .map((one) => ({ one, from: minuteIn(Date.parse(one.startsAt)), to: minuteIn(Date.parse(one.endsAt)) }))
    .sort((a, b) => a.from - b.from);
  return DAYS.map((_, index) => {
    const start = (today + index) * DAY;
    const date = new Date(start * MINUTE_MS);
    return {
      name: `${DAYS[(date.getUTCDay() + 6) % 7] ?? ""} ${date.toISOString().slice(5, 10)}`,
      blocks: spans
        .filter(({ from, to }) => from < start + DAY && to > start)
        .map(({ one, from, to }) => ({
          ...{ key: one.id, from: Math.max(0, from - start), to: Math.min(DAY, to - start), look: "more" as const },
          text: `${one.teamName} ${formatAmount(one.milli)} ${one.gpuType}${one.userName ? `, ${one.userName}` : ""}`,
          short: formatAmount(one.milli),
        })),
    };
  });
}
