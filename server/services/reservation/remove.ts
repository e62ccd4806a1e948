import { and, eq, gte } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type RemoveReservationInput,
  type ReservationList,
  removeReservationInput,
} from "#server/contracts/sharing.ts";
import { reservations } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { giveUp } from "./give-up.ts";
import { list } from "./list.ts";

/** Gives a reservation up, or with it all later ones of its series; what was kept for it goes to the queue within a second. */
export async function remove(ctx: Context, raw: RemoveReservationInput): Promise<ReservationList> {
  const { id, following } = parse(removeReservationInput, raw);
  const [found] = await ctx.db.select().from(reservations).where(eq(reservations.id, id));
  authorize(ctx.principal, "reservation.remove", found);
  const which =
    following === "true" && found?.seriesId
      ? and(eq(reservations.seriesId, found.seriesId), gte(reservations.startsAt, found.startsAt))
      : eq(reservations.id, id);
  return await inTransaction(ctx, async (tx) => {
    if ((await giveUp(tx, which)) === 0)
      throw new SluiceError("not-found", "There is no such reservation. Reload the page.");
    return await list(tx);
  });
}
