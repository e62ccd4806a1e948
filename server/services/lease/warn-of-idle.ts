import { eq, inArray } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { leases, teamPolicies } from "#server/db/schema/index.ts";
import { idling } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";
import { idleEndOf, lastWorkOf, theirs } from "./holder.ts";
import { DEFAULT_IDLE_SECONDS } from "./policy.ts";

/** The last fifth of the idle time is for the warning, at most five minutes. */
const WARN_PART = 5;
const WARN_MOST_MS = 5 * 60_000;

/** When the holder of a lease without GPU work is told that it will end for it, at `endsAt`. */
export function idleWarningAt(endsAt: number, idleMs: number): number {
  return endsAt - Math.min(WARN_MOST_MS, Math.floor(idleMs / WARN_PART));
}

/** Tells the holders of leases that soon end for want of GPU work, once for each idle stretch. */
export async function warnOfIdle(ctx: Context): Promise<void> {
  authorize(ctx.principal, "notice.write");
  const now = ctx.now().getTime();
  const rows = await ctx.db
    .select({ lease: leases, idleSeconds: teamPolicies.idleSeconds })
    .from(leases)
    .leftJoin(teamPolicies, eq(teamPolicies.teamId, leases.teamId))
    .where(inArray(leases.state, ["granted", "active", "unreachable"]));
  const warned = rows
    .filter(({ lease }) => lease.ordinal === 0)
    .flatMap(({ lease: { requestId }, idleSeconds }) => {
      const parts = rows.flatMap(({ lease }) => (lease.requestId === requestId ? [lease] : []));
      const idleMs = (idleSeconds ?? DEFAULT_IDLE_SECONDS) * 1000;
      const endsAt = idleEndOf(parts, idleMs);
      if (endsAt === null || now < idleWarningAt(endsAt.getTime(), idleMs)) return [];
      return [idling(theirs(parts), lastWorkOf(parts), endsAt)];
    });
  if (warned.length > 0) await inTransaction(ctx, async (tx) => await writeNotices(tx, warned));
}
