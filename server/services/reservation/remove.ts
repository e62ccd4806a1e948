import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type RemoveReservationInput,
  type ReservationList,
  removeReservationInput,
} from "#server/contracts/sharing.ts";
import { reservations } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { list } from "./list.ts";
import { selectReservations, viewOf } from "./view.ts";

/** Gives a reservation up; what was kept for it goes to the queue within a second. */
export async function remove(ctx: Context, raw: RemoveReservationInput): Promise<ReservationList> {
  const { id } = parse(removeReservationInput, raw);
  const [found] = await ctx.db.select().from(reservations).where(eq(reservations.id, id));
  authorize(ctx.principal, "reservation.remove", found);
  return await inTransaction(ctx, async (tx) => {
    const [before] = await selectReservations(tx).where(eq(reservations.id, id));
    const [gone] = await tx.db.delete(reservations).where(eq(reservations.id, id)).returning();
    if (gone === undefined || before === undefined)
      throw new SluiceError("not-found", "There is no such reservation. Reload the page.");
    await audit(tx, {
      action: "reservation.remove",
      subject: id,
      teamId: gone.teamId,
      detail: { before: viewOf(before) },
    });
    await notify(tx.db, "pool", id);
    return await list(tx);
  });
}
