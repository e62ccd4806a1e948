import { and, desc, eq, gt, isNull, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { SessionList } from "#server/contracts/session.ts";
import { sessions } from "#server/db/schema/index.ts";

/** Where whoever asks is signed in, the one last used first. */
export async function list(ctx: Context): Promise<SessionList> {
  authorize(ctx.principal, "session.list");
  if (ctx.principal.kind !== "user") return { sessions: [] };
  const { userId, sessionId } = ctx.principal;
  const rows = await ctx.db
    .select()
    .from(sessions)
    .where(and(eq(sessions.userId, userId), isNull(sessions.revokedAt), gt(sessions.expiresAt, ctx.now())))
    .orderBy(sql`${sessions.lastSeenAt} desc nulls last`, desc(sessions.createdAt));
  return {
    sessions: rows.map(({ id, createdAt, expiresAt, lastSeenAt, userAgent, address, openedBy }) => ({
      ...{ id, current: id === sessionId, userAgent, address, openedByAdmin: openedBy !== null },
      createdAt: createdAt.toISOString(),
      expiresAt: expiresAt.toISOString(),
      lastSeenAt: lastSeenAt?.toISOString() ?? null,
    })),
  };
}
