import { authorize, type Context } from "#server/context.ts";
import { end } from "#server/services/session/end.ts";

/** Ends the browser session that asks. Called with a token there is none to end. */
export async function endOwn(ctx: Context): Promise<Record<string, never>> {
  authorize(ctx.principal, "session.read");
  const sessionId = ctx.principal.kind === "user" ? ctx.principal.sessionId : undefined;
  return sessionId === undefined ? {} : await end(ctx, { sessionId });
}
