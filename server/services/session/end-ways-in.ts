import { and, eq, isNull } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { accessTokens, gatewaySessions, sessions } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";

/** Ends every way that a person has into the account now: browser sessions, what they opened, access tokens. */
export async function endWaysIn(tx: Context, userId: string): Promise<void> {
  const revoked = { revokedAt: tx.now() };
  const ended = await tx.db
    .update(sessions)
    .set(revoked)
    .where(and(eq(sessions.userId, userId), isNull(sessions.revokedAt)))
    .returning({ id: sessions.id });
  await tx.db
    .update(gatewaySessions)
    .set(revoked)
    .where(and(eq(gatewaySessions.userId, userId), isNull(gatewaySessions.revokedAt)));
  await tx.db
    .update(accessTokens)
    .set(revoked)
    .where(and(eq(accessTokens.userId, userId), isNull(accessTokens.revokedAt)));
  for (const { id } of ended) await notify(tx.db, "session", id);
}
