import { and, eq, isNull } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type RevokeAccessTokenInput, revokeAccessTokenInput } from "#server/contracts/access-token.ts";
import { accessTokens } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";

/** Ends a token of one's own at once. */
export async function revoke(ctx: Context, raw: RevokeAccessTokenInput): Promise<Record<string, never>> {
  authorize(ctx.principal, "access-token.list");
  const { id } = parse(revokeAccessTokenInput, raw);
  const ownerId = ctx.principal.kind === "user" ? ctx.principal.userId : "";
  await inTransaction(ctx, async (tx) => {
    const [row] = await tx.db
      .update(accessTokens)
      .set({ revokedAt: tx.now() })
      .where(and(eq(accessTokens.id, id), eq(accessTokens.userId, ownerId), isNull(accessTokens.revokedAt)))
      .returning();
    if (row === undefined) throw new SluiceError("not-found", "You have no such token.");
    authorize(tx.principal, "access-token.revoke", { ownerId: row.userId });
    await notify(tx.db, "session", id);
    await audit(tx, { action: "access-token.revoke", subject: id, detail: { name: row.name } });
  });
  return {};
}
