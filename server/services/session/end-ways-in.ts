import { and, eq, inArray, isNull, ne, or, type SQL } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { accessTokens, gatewaySessions, oneTimeCodes, sessions } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";

/**
 * Ends every way that a person has into the portal now: browser sessions, those that they opened as the sample user,
 * access tokens, and links for a new password.
 */
export async function endWaysIn(tx: Context, userId: string): Promise<void> {
  await endSessionsOf(tx, userId);
  await endTokens(tx, userId);
  await endPasswordLinks(tx, userId);
}

/** Ends a person's browser sessions but the one that stays, and those that they opened as the sample user; how many. */
export async function endSessionsOf(tx: Context, userId: string, stays?: string): Promise<number> {
  const theirs = or(eq(sessions.userId, userId), eq(sessions.openedBy, userId));
  return await endSessions(tx, stays === undefined ? theirs : and(theirs, ne(sessions.id, stays)));
}

export async function endTokens(tx: Context, userId: string): Promise<void> {
  const ended = await tx.db
    .update(accessTokens)
    .set({ revokedAt: tx.now() })
    .where(and(eq(accessTokens.userId, userId), isNull(accessTokens.revokedAt)))
    .returning({ id: accessTokens.id });
  for (const { id } of ended) await notify(tx.db, "session", id);
}

/** Links that were made for this person and not used open nothing any more. */
export async function endPasswordLinks(tx: Context, userId: string): Promise<void> {
  await tx.db
    .delete(oneTimeCodes)
    .where(and(eq(oneTimeCodes.kind, "password"), eq(oneTimeCodes.userId, userId), isNull(oneTimeCodes.usedAt)));
}

/** Ends the windows that somebody opened as the sample user. */
export async function endOpened(tx: Context, userId: string): Promise<void> {
  await endSessions(tx, eq(sessions.openedBy, userId));
}

/** With what the gateway opened for them; how many there were. */
async function endSessions(tx: Context, which: SQL | undefined): Promise<number> {
  const ended = await tx.db
    .update(sessions)
    .set({ revokedAt: tx.now() })
    .where(and(which, isNull(sessions.revokedAt)))
    .returning({ id: sessions.id });
  const ids = ended.map(({ id }) => id);
  await tx.db
    .update(gatewaySessions)
    .set({ revokedAt: tx.now() })
    .where(and(inArray(gatewaySessions.sessionId, ids), isNull(gatewaySessions.revokedAt)));
  for (const id of ids) await notify(tx.db, "session", id);
  return ids.length;
}
