import { lt } from "drizzle-orm";
import { sweepAttempts } from "#server/auth/attempts.ts";
import { authorize, type Context } from "#server/context.ts";
import { gatewaySessions, oneTimeCodes, sessions } from "#server/db/schema/index.ts";

/** How long what is over stays readable for whoever looks into the tables. */
const KEEP_MS = 30 * 86_400_000;

/** Removes codes and sessions that ended long ago; what was done with them stays in the audit. */
export async function sweep(ctx: Context): Promise<void> {
  authorize(ctx.principal, "session.create");
  const before = new Date(ctx.now().getTime() - KEEP_MS);
  await sweepAttempts(ctx);
  await ctx.db.delete(oneTimeCodes).where(lt(oneTimeCodes.expiresAt, before));
  await ctx.db.delete(gatewaySessions).where(lt(gatewaySessions.expiresAt, before));
  await ctx.db.delete(sessions).where(lt(sessions.expiresAt, before));
}
