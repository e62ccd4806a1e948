import type { Context } from "#server/context.ts";
import { mostIdleFrom } from "./most-idle.ts";
import { partsOf } from "./parts.ts";
import { waitsIn } from "./quantiles.ts";
import { readWaitsByTeam } from "./waits.ts";

/**
 * How long 95 of 100 grants of the last seven days had waited at most, seconds; null: nothing was granted. Of all teams,
 * for admins, or of some, for their leads.
 */
export async function recentWaitP95(ctx: Context, teamIds?: readonly string[]): Promise<number | null> {
  const parts = partsOf(ctx, teamIds);
  const span = { from: new Date(mostIdleFrom(ctx.now())), to: ctx.now() };
  const waits = await Promise.all(parts.map((part) => readWaitsByTeam(ctx, span, part)));
  return waitsIn(waits.flat().map((each) => each.waits)).waitP95;
}
