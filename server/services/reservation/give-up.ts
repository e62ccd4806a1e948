import { and, asc, eq, gt, type SQL } from "drizzle-orm";
import { audit, type Context } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { reservations } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { selectReservations, viewOf } from "./view.ts";

type Tx = Context & { db: Transaction };

/**
 * Gives reservations up, on record, those of a series together, and says how many; what was kept for them goes to the
 * queue within a second. Part of an operation that its caller has authorised.
 */
export async function giveUp(tx: Tx, which: SQL | undefined): Promise<number> {
  const before = await selectReservations(tx)
    .where(which)
    .orderBy(asc(reservations.startsAt))
    .for("update", { of: reservations });
  await tx.db.delete(reservations).where(which);
  for (const [first, ...following] of Map.groupBy(before.map(viewOf), ({ id, seriesId }) => seriesId ?? id).values()) {
    if (first === undefined) continue;
    const { id, teamId } = first;
    const detail = { before: first, ...(following.length === 0 ? {} : { following }) };
    await audit(tx, { action: "reservation.remove", subject: id, teamId, detail });
    await notify(tx.db, "pool", id);
  }
  return before.length;
}

/** Gives up what is reserved for one person alone, in one team or in all: nobody else may use it. */
export async function giveUpOfPerson(tx: Tx, { userId, teamId }: { userId: string; teamId?: string }): Promise<void> {
  const inTeam = teamId === undefined ? undefined : eq(reservations.teamId, teamId);
  await giveUp(tx, and(eq(reservations.userId, userId), gt(reservations.endsAt, tx.now()), inTeam));
}
