import { eq } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { ReservationView } from "#server/contracts/sharing.ts";
import { reservations, users } from "#server/db/schema/index.ts";

type Row = { reservation: typeof reservations.$inferSelect; userName: string | null };

export function viewOf({ reservation, userName }: Row): ReservationView {
  const { id, teamId, userId, gpuType, milli, unitMilli, note, seriesId } = reservation;
  return {
    ...{ id, teamId, userId, userName, gpuType, milli, unitMilli, note, seriesId },
    ...{ startsAt: reservation.startsAt.toISOString(), endsAt: reservation.endsAt.toISOString() },
  };
}

/** Reservations with the name of whom each is for; add conditions and order. */
export function selectReservations({ db }: Pick<Context, "db">) {
  return db
    .select({ reservation: reservations, userName: users.name })
    .from(reservations)
    .leftJoin(users, eq(users.id, reservations.userId))
    .$dynamic();
}
