import { and, eq } from "drizzle-orm";
import { type AuditInput, audit, type Context, inTransaction } from "#server/context.ts";
import { leaseRequests } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { advanceTogether } from "./advance-together.ts";
import { queuedIn } from "./answer.ts";
import { shownWorld } from "./shown.ts";

/**
 * Takes a request out of the queue: `expired` when its waiting time is over, `cancelled` when its client left or
 * stopped asking, or when somebody took it out, which its client is told then. Those behind it move up. Returns
 * whether it was still queued.
 */
export async function expireRequest(
  ctx: Context,
  id: string,
  state: "expired" | "cancelled",
  takenOut?: { said: string; audit: AuditInput },
): Promise<boolean> {
  const [known] = await ctx.db.select().from(leaseRequests).where(eq(leaseRequests.id, id)).limit(1);
  if (known === undefined || known.state !== "queued") return false;
  const now = ctx.now();
  const { world, verdicts } = await shownWorld(ctx.db, known, now);
  const answer = queuedIn(world, known, now, verdicts);
  const held = answer.state === "queued" ? answer.reason : null;
  const reason = takenOut === undefined ? held : { rule: "taken-out" as const, message: takenOut.said };
  const left = await inTransaction(ctx, async (tx) => {
    const rows = await tx.db
      .update(leaseRequests)
      .set({ state, decidedAt: now, reason })
      .where(and(eq(leaseRequests.id, id), eq(leaseRequests.state, "queued")))
      .returning({ id: leaseRequests.id });
    if (rows.length === 0) return false;
    if (takenOut !== undefined) await audit(tx, takenOut.audit);
    await notify(tx.db, "lease", id);
    return true;
  });
  if (left) await advanceTogether(ctx.db, known.gpuType);
  return left;
}
