import { lt } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { notices } from "#server/db/schema/index.ts";

/** Longer than a month, since budgets are told once a month and level. */
const KEEP_MS = 60 * 86_400_000;

/** Removes what was told long ago. */
export async function sweepNotices(ctx: Context): Promise<void> {
  authorize(ctx.principal, "notice.write");
  await ctx.db.delete(notices).where(lt(notices.createdAt, new Date(ctx.now().getTime() - KEEP_MS)));
}
