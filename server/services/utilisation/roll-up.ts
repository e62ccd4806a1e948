import { sql } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { usageRollup } from "#server/db/schema/index.ts";
import { AMOUNTS, floorTo, HOUR_S, heldInLedger, poolInLedger } from "./ledger.ts";
import { waitsOf } from "./waits.ts";

const HOUR_MS = HOUR_S * 1000;
/** An hour is taken when it has been over for so long that no transaction can still write into it. */
const SETTLED_MS = 5 * 60_000;
/** So much is made at once, so that a year to catch up with holds nobody up. */
const MOST_MS = 7 * 24 * HOUR_MS;

/**
 * Makes the accounts of the next hours that are over, and of the days and weeks that are complete with them. What was there for
 * these hours is replaced, so that the same hour may be made any number of times. Tells whether more is left to make.
 */
export async function rollUp(ctx: Context): Promise<boolean> {
  authorize(ctx.principal, "gpu-server.control");
  return await inTransaction(ctx, async (tx) => {
    const [mark] = await tx.db.select().from(usageRollup).for("update");
    const over = floorTo(HOUR_S, new Date(tx.now().getTime() - SETTLED_MS));
    if (mark === undefined || mark.rolledTo >= over) return false;
    const from = mark.rolledTo;
    const to = new Date(Math.min(over.getTime(), from.getTime() + MOST_MS));
    const [first, last] = [sql`${from.toISOString()}::timestamptz`, sql`${to.toISOString()}::timestamptz`];
    const key = sql.raw("at, gpu_type, team_id, user_id, workspace_id, state");
    const teamKey = sql.raw("at, gpu_type, team_id, state");
    const amounts = sql.raw(AMOUNTS.join(", "));
    const sums = sql.raw(AMOUNTS.map((amount) => `sum(${amount})`).join(", "));
    await tx.db.execute(sql`delete from usage_hours where at >= ${first}`);
    await tx.db.execute(sql`insert into usage_hours (${key}, ${amounts})
      select ${key}, ${sums} from (${heldInLedger({ from, to }, {}, HOUR_S, to)}) x group by ${key}`);
    await tx.db.execute(sql`delete from usage_team_hours where at >= ${first}`);
    await tx.db.execute(sql`insert into usage_team_hours (${teamKey}, ${amounts})
      select ${teamKey}, ${sums} from usage_hours where at >= ${first} group by ${teamKey}`);
    await tx.db.execute(sql`delete from pool_hours where at >= ${first}`);
    await tx.db.execute(sql`insert into pool_hours (at, gpu_type, state, wall)
      select at, gpu_type, state, wall from (${poolInLedger({ from, to }, {}, HOUR_S, to)}) x`);
    const day = sql`date_bin('1 day', at, timestamptz 'epoch')`;
    const days = sql`at >= date_bin('1 day', ${first}, timestamptz 'epoch')`;
    await tx.db.execute(sql`delete from usage_days where ${days}`);
    await tx.db.execute(sql`insert into usage_days (${key}, ${amounts})
      select ${day}, gpu_type, team_id, user_id, workspace_id, state, ${sums} from usage_hours
      where ${days} and at < date_bin('1 day', ${last}, timestamptz 'epoch')
      group by ${day}, gpu_type, team_id, user_id, workspace_id, state`);
    await tx.db.execute(sql`delete from usage_team_days where ${days}`);
    await tx.db.execute(sql`insert into usage_team_days (${teamKey}, ${amounts})
      select ${teamKey}, ${sums} from usage_days where ${days} group by ${teamKey}`);
    const week = sql`date_bin('7 days', at, timestamptz 'epoch')`;
    const weeks = sql`at >= date_bin('7 days', ${first}, timestamptz 'epoch')`;
    await tx.db.execute(sql`delete from usage_weeks where ${weeks}`);
    await tx.db.execute(sql`insert into usage_weeks (at, team_id, user_id, workspace_id, ${amounts})
      select ${week}, team_id, user_id, workspace_id, ${sums} from usage_days
      where ${weeks} and at < date_bin('7 days', ${last}, timestamptz 'epoch')
      group by ${week}, team_id, user_id, workspace_id`);
    await tx.db.execute(sql`delete from wait_days where ${days}`);
    await tx.db.execute(sql`insert into wait_days (at, gpu_type, team_id, waits)
      select date_bin('1 day', decided_at, timestamptz 'epoch'), gpu_type, team_id, ${waitsOf} from lease_requests
      where state = 'granted' and decided_at >= date_bin('1 day', ${first}, timestamptz 'epoch')
        and decided_at < date_bin('1 day', ${last}, timestamptz 'epoch')
      group by 1, 2, 3`);
    await tx.db.update(usageRollup).set({ rolledTo: to });
    return to < over;
  });
}
