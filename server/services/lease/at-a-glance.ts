import { and, asc, eq, ne } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { Glance } from "#server/contracts/session.ts";
import { leaseRequests, leases } from "#server/db/schema/index.ts";
import { readIdleEnds } from "./idle-ends.ts";
import { shownWorld } from "./shown.ts";

/** What a person holds and what waits longest of their own: every page's top bar says it. */
export async function atAGlance(ctx: Context): Promise<Pick<Glance, "leases" | "waiting">> {
  authorize(ctx.principal, "lease.list");
  if (ctx.principal.kind !== "user") return { leases: [], waiting: null };
  const { userId } = ctx.principal;
  const held = await ctx.db
    .select({
      ...{ requestId: leases.requestId, gpuType: leases.gpuType, milli: leases.milli },
      ...{ expiresAt: leases.expiresAt, releaseAt: leases.releaseAt },
    })
    .from(leases)
    .where(and(eq(leases.userId, userId), ne(leases.state, "ended")));
  if (held.length > 0) {
    const idleEnds = await readIdleEnds(
      ctx.db,
      held.map(({ requestId }) => requestId),
    );
    const shown = held.map(({ requestId, expiresAt, releaseAt, ...amount }) => ({
      ...amount,
      expiresAt: expiresAt.toISOString(),
      idleEndsAt: idleEnds.get(requestId) ?? null,
      releaseAt: releaseAt?.toISOString() ?? null,
    }));
    return { leases: shown, waiting: null };
  }
  const [oldest] = await ctx.db
    .select({ id: leaseRequests.id, gpuType: leaseRequests.gpuType, milli: leaseRequests.milli })
    .from(leaseRequests)
    .where(and(eq(leaseRequests.userId, userId), eq(leaseRequests.state, "queued")))
    .orderBy(asc(leaseRequests.createdAt))
    .limit(1);
  if (oldest === undefined) return { leases: [], waiting: null };
  const { id, gpuType, milli } = oldest;
  const { verdicts } = await shownWorld(ctx.db, { gpuType, id }, ctx.now());
  const verdict = verdicts.find(({ requestId }) => requestId === id);
  return { leases: [], waiting: { gpuType, milli, position: verdict?.state === "queued" ? verdict.position : null } };
}
