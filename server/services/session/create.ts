import { and, eq, isNull } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { sessions, users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";

/** A browser session ends after a week, whatever happens in it. */
export const SESSION_SECONDS = 7 * 24 * 3600;

/** Opens a browser session for a person whose identity was proved (password, OIDC, or an admin's one-time code). */
export async function createSession(
  ctx: Context,
  input: {
    userId: string;
    userAgent?: string | null;
    /** Where the person signed in from: strangers' guesses cannot lock them out there (`sign-in-limit.ts`). */
    address?: string;
    openedBy?: string;
    by: "password" | "oidc" | "sample";
  },
): Promise<{ sessionId: string; expiresAt: Date }> {
  authorize(ctx.principal, "session.create");
  return await inTransaction(ctx, async (tx) => {
    const [user] = await tx.db
      .select()
      .from(users)
      .where(and(eq(users.id, input.userId), isNull(users.disabledAt)));
    if (user === undefined) throw new SluiceError("unauthenticated", "This account is not active. Ask an admin.");
    const sessionId = newId("ses");
    const expiresAt = new Date(tx.now().getTime() + SESSION_SECONDS * 1000);
    await tx.db.insert(sessions).values({
      id: sessionId,
      userId: user.id,
      createdAt: tx.now(),
      expiresAt,
      userAgent: input.userAgent?.slice(0, 300) ?? null,
      address: input.address ?? null,
      lastSeenAt: tx.now(),
      openedBy: input.openedBy ?? null,
    });
    const acting: Context = {
      ...tx,
      address: input.address ?? tx.address,
      principal: {
        kind: "user",
        userId: user.id,
        email: user.email,
        name: user.name,
        isAdmin: user.isAdmin,
        teams: {},
      },
    };
    const { by, openedBy } = input;
    const detail = { by, ...(openedBy && { openedBy }) };
    await audit(acting, { action: "session.create", subject: user.id, detail });
    return { sessionId, expiresAt };
  });
}
