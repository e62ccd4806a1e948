import type { Context } from "#server/context.ts";
import { observedSince } from "#server/services/utilisation/observed-since.ts";
import { monthOf } from "./month.ts";

/** The month in which the first GPU joined the pool: months before have no costs. This month while none has. */
export async function firstMonth(ctx: Context): Promise<string> {
  return monthOf((await observedSince(ctx.db)) ?? ctx.now());
}
