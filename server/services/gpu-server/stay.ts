import { and, eq, isNotNull, isNull } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { leases } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { withdrawNotices } from "#server/services/notice/withdraw.ts";
import { serverKey } from "#server/services/notice/words.ts";

/**
 * A server that was about to go out of service takes leases again: notices of that which are not over are taken back. Part of
 * `followNode`, in its transaction.
 */
export async function stay(ctx: Context & { db: Transaction }, { serverId }: { serverId: string }): Promise<void> {
  const ofServer = and(isNull(leases.noticeFor), isNotNull(leases.noticeAt), isNotNull(leases.releaseAt));
  const told = await ctx.db
    .select()
    .from(leases)
    .where(and(eq(leases.serverId, serverId), ofServer))
    .orderBy(leases.id)
    .for("update");
  const ahead = told.filter(({ releaseAt }) => releaseAt !== null && releaseAt > ctx.now());
  for (const requestId of new Set(ahead.map((lease) => lease.requestId))) {
    // All devices of a lease have the notice.
    const parts = await ctx.db
      .update(leases)
      .set({ noticeAt: null, releaseAt: null })
      .where(and(eq(leases.requestId, requestId), ofServer))
      .returning({ id: leases.id });
    for (const { id } of parts) await notify(ctx.db, "lease", id);
  }
  const keys = ahead.flatMap(({ requestId, releaseAt }) =>
    releaseAt === null ? [] : [serverKey(requestId, releaseAt)],
  );
  await withdrawNotices(ctx, keys);
}
