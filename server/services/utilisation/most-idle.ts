import { authorize, type Context } from "#server/context.ts";
import type { UtilisationRow } from "#server/contracts/utilisation.ts";
import { readHeldTimes, rowsOf } from "./rows.ts";

export const MOST_IDLE_DAYS = 7;

/**
 * The people who held most GPU time of the last seven days while their GPU did nothing, most idle first; waits and
 * lending are not told. For admins.
 */
export async function mostIdle(ctx: Context, limit: number): Promise<UtilisationRow[]> {
  authorize(ctx.principal, "utilisation.read", {});
  const to = ctx.now();
  const span = { from: new Date(to.getTime() - MOST_IDLE_DAYS * 86_400_000), to };
  const rows = rowsOf(await readHeldTimes(ctx, span, {}, "person"), "person", "idle");
  return rows.filter((row) => row.heldIdle > 0).slice(0, limit);
}
