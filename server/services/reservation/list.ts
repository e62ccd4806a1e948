import { and, asc, gt, inArray } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { ReservationList } from "#server/contracts/sharing.ts";
import { reservations } from "#server/db/schema/index.ts";
import { selectReservations, viewOf } from "./view.ts";

/** Reservations that have not ended: of one's own teams; for an admin all. */
export async function list(ctx: Context): Promise<ReservationList> {
  authorize(ctx.principal, "reservation.list");
  const { principal } = ctx;
  const own = principal.kind === "user" && !principal.isAdmin ? Object.keys(principal.teams) : undefined;
  if (own?.length === 0) return { reservations: [] };
  const rows = await selectReservations(ctx)
    .where(and(gt(reservations.endsAt, ctx.now()), own === undefined ? undefined : inArray(reservations.teamId, own)))
    .orderBy(asc(reservations.startsAt));
  return { reservations: rows.map(viewOf) };
}
