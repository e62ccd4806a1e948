import { and, eq, gt, inArray, or } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { gpuServers, leases } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { knowsServerLeaves, theirs } from "#server/services/lease/holder.ts";
import { leaving } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";
import { closedAt } from "./closed-at.ts";

/** A lease that can be told to end. */
const isLive = inArray(leases.state, ["granted", "active", "unreachable"]);
/** Such a one, or one that has ended with its memory parked. */
const held = or(isLive, and(eq(leases.state, "ended"), gt(leases.parkedBytes, 0)));

/**
 * Nobody keeps GPU servers from being replaced, or their node from being emptied, for ever: when those of this node have
 * taken no new leases for `afterMs`, everybody who holds a lease or parked memory there has `noticeMs` of notice. The
 * leases end then, and nothing of them is parked there. Who has a notice already keeps that. Returns how many leases were
 * told of.
 */
export async function vacate(
  ctx: Context,
  { nodeName, afterMs, noticeMs }: { nodeName: string; afterMs: number; noticeMs: number },
): Promise<number> {
  authorize(ctx.principal, "gpu-server.follow-node");
  return await inTransaction(ctx, async (tx) => {
    const now = tx.now().getTime();
    const rows = await tx.db
      .select({ lease: leases, since: closedAt })
      .from(leases)
      .innerJoin(gpuServers, eq(gpuServers.id, leases.serverId))
      .where(and(eq(gpuServers.nodeName, nodeName), held))
      .orderBy(leases.id)
      .for("update", { of: leases });
    const untold = rows.filter(({ lease, since }) => {
      if (since === null || since.getTime() + afterMs > now || knowsServerLeaves(lease, since)) return false;
      return lease.state === "ended" || lease.releaseAt === null;
    });
    const releaseAt = new Date(now + noticeMs);
    for (const requestId of new Set(untold.map(({ lease }) => lease.requestId))) {
      const here = rows.flatMap(({ lease }) => (lease.requestId === requestId ? [lease] : []));
      // All devices of a lease end together, those on servers that stay as well.
      const live = and(eq(leases.requestId, requestId), isLive);
      const parts = here.some(({ state }) => state !== "ended")
        ? await tx.db.select().from(leases).where(live).orderBy(leases.id).for("update")
        : here;
      const ids = parts.map(({ id }) => id);
      await tx.db
        .update(leases)
        .set({ noticeFor: null, noticeAt: new Date(now), releaseAt })
        .where(inArray(leases.id, ids));
      await writeNotices(tx, [leaving(theirs(parts), releaseAt, parts[0]?.state === "ended")]);
      const [first] = parts;
      const detail = { for: "server", releaseAt: releaseAt.toISOString() };
      await audit(tx, { action: "lease.notice", subject: first?.id, teamId: first?.teamId, detail });
      for (const id of ids) await notify(tx.db, "lease", id);
    }
    return untold.length;
  });
}
