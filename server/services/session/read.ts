import { and, eq, gt, isNull } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { sessions } from "#server/db/schema/index.ts";

/** The session while it lasts: not revoked, not over. */
export async function readSession(
  ctx: Pick<Context, "db" | "now">,
  sessionId: string,
): Promise<typeof sessions.$inferSelect | undefined> {
  const [row] = await ctx.db
    .select()
    .from(sessions)
    .where(and(eq(sessions.id, sessionId), isNull(sessions.revokedAt), gt(sessions.expiresAt, ctx.now())));
  return row;
}
