import { useCode } from "#server/auth/one-time-code.ts";
import { system } from "#server/auth/principal.ts";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { SluiceError } from "#server/errors.ts";
import { createSession } from "#server/services/session/create.ts";
import { readSession } from "#server/services/session/read.ts";

/** Trades the admin's one-time code for a browser session as the sample user. */
export async function enterSample(
  ctx: Context,
  input: { code: string; userAgent?: string | null },
): Promise<{ sessionId: string; userId: string; expiresAt: Date }> {
  authorize(ctx.principal, "user.enter-sample");
  return await inTransaction(ctx, async (tx) => {
    const code = await useCode(tx, "sample", input.code);
    const opener = code?.sessionId == null ? undefined : await readSession(tx, code.sessionId);
    if (code?.userId == null || opener === undefined) {
      throw new SluiceError("forbidden", "This link was used already or is too old. Open the sample user again.");
    }
    const session = await createSession(
      { ...tx, principal: system },
      {
        userId: code.userId,
        userAgent: input.userAgent,
        openedBy: opener.userId,
        by: "sample",
      },
    );
    return { ...session, userId: code.userId };
  });
}
