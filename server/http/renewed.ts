import { principalFromHeaders } from "#server/auth/principal-from-request.ts";
import type { Context } from "#server/context.ts";

/** The context with its principal read again: a stream ends when the session does or a role is taken away. */
export async function renewed<C extends Context & { request: Request }>(ctx: C): Promise<C> {
  return { ...ctx, principal: await principalFromHeaders(ctx.db, ctx.request.headers, { isSeenBefore: true }) };
}
