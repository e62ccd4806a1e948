import type { ReservationView } from "#server/contracts/sharing.ts";
import type { reservations } from "#server/db/schema/index.ts";

export function viewOf(row: typeof reservations.$inferSelect): ReservationView {
  const { id, teamId, gpuType, milli, unitMilli, note } = row;
  return {
    ...{ id, teamId, gpuType, milli, unitMilli, note },
    ...{ startsAt: row.startsAt.toISOString(), endsAt: row.endsAt.toISOString() },
  };
}
