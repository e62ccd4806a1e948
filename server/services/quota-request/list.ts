import { and, desc, gt, inArray } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { QuotaRequestList } from "#server/contracts/sharing.ts";
import { quotaRequests } from "#server/db/schema/index.ts";
import { viewOf } from "./view.ts";

/** Requests for more that have not ended: of one's own teams; for an admin all. */
export async function list(ctx: Context): Promise<QuotaRequestList> {
  authorize(ctx.principal, "quota-request.list");
  const { principal } = ctx;
  const own = principal.kind === "user" && !principal.isAdmin ? Object.keys(principal.teams) : undefined;
  if (own?.length === 0) return { requests: [] };
  const rows = await ctx.db
    .select()
    .from(quotaRequests)
    .where(and(gt(quotaRequests.endsAt, ctx.now()), own === undefined ? undefined : inArray(quotaRequests.teamId, own)))
    .orderBy(desc(quotaRequests.createdAt));
  return { requests: rows.map(viewOf) };
}
