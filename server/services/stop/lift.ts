import { and, eq, isNull } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type LiftStopInput, liftStopInput, type StopList } from "#server/contracts/sharing.ts";
import { stopSwitches } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { list } from "./list.ts";

/** Grants leases again to those whom this switch stopped; the queue moves on within a second. */
export async function lift(ctx: Context, raw: LiftStopInput): Promise<StopList> {
  authorize(ctx.principal, "stop.set");
  const { id } = parse(liftStopInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const lifted = await tx.db
      .update(stopSwitches)
      .set({ liftedAt: tx.now() })
      .where(and(eq(stopSwitches.id, id), isNull(stopSwitches.liftedAt)))
      .returning({ id: stopSwitches.id });
    if (lifted.length === 0) throw new SluiceError("not-found", "This stop is lifted already. Reload the page.");
    await audit(tx, { action: "stop.lift", subject: id });
    await notify(tx.db, "pool", id);
    // The banner is on every page, and those follow leases.
    await notify(tx.db, "lease", id);
    return await list(tx);
  });
}
