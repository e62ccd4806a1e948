import { and, desc, eq, isNull } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { AccessTokenList, AccessTokenView } from "#server/contracts/access-token.ts";
import { accessTokens } from "#server/db/schema/index.ts";

/** One's own tokens that were not revoked, newest first. */
export async function list(ctx: Context): Promise<AccessTokenList> {
  authorize(ctx.principal, "access-token.list");
  if (ctx.principal.kind !== "user") return { tokens: [] };
  const rows = await ctx.db
    .select()
    .from(accessTokens)
    .where(and(eq(accessTokens.userId, ctx.principal.userId), isNull(accessTokens.revokedAt)))
    .orderBy(desc(accessTokens.createdAt));
  return { tokens: rows.map(accessTokenViewOf) };
}

export function accessTokenViewOf(row: typeof accessTokens.$inferSelect): AccessTokenView {
  return {
    id: row.id,
    name: row.name,
    scopes: row.scopes,
    createdAt: row.createdAt.toISOString(),
    expiresAt: row.expiresAt?.toISOString() ?? null,
    lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
  };
}
