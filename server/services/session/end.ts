import { and, eq, isNull } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type EndSessionInput, endSessionInput } from "#server/contracts/session.ts";
import { gatewaySessions, sessions } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { readSession } from "#server/services/session/read.ts";

/** Signs out: the session is over everywhere, and what the gateway opened for it is closed. */
export async function end(ctx: Context, raw: EndSessionInput): Promise<Record<string, never>> {
  const { sessionId } = parse(endSessionInput, raw);
  await inTransaction(ctx, async (tx) => {
    const session = await readSession(tx, sessionId);
    if (session === undefined) return;
    authorize(tx.principal, "session.end", { ownerId: session.userId });
    await tx.db.update(sessions).set({ revokedAt: tx.now() }).where(eq(sessions.id, sessionId));
    await tx.db
      .update(gatewaySessions)
      .set({ revokedAt: tx.now() })
      .where(and(eq(gatewaySessions.sessionId, sessionId), isNull(gatewaySessions.revokedAt)));
    await audit(tx, { action: "session.end", subject: session.userId });
    await notify(tx.db, "session", sessionId);
  });
  return {};
}
