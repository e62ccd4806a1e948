import { and, eq, inArray } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { gpuPrices } from "#server/db/schema/index.ts";
import { readWalls, soFar, toHours } from "./compute.ts";
import { monthOf } from "./month.ts";

/**
 * What an hour of a GPU costs of those of these types that are priced by the month, on average of this month so far, as the
 * month's costs divide the price: millionths of the currency's unit. The caller has authorised.
 */
export async function averageHours(ctx: Context, gpuTypes: readonly string[]): Promise<Map<string, number>> {
  const prices = await ctx.db
    .select()
    .from(gpuPrices)
    .where(and(eq(gpuPrices.basis, "month"), inArray(gpuPrices.gpuType, [...new Set(gpuTypes)])));
  if (prices.length === 0) return new Map();
  const { span, partOfMonth } = soFar(monthOf(ctx.now()), ctx.now());
  const walls = await readWalls(ctx, span);
  return new Map(
    prices.flatMap(({ gpuType, micro }) => {
      const hours = walls.reduce((sum, wall) => (wall.gpuType === gpuType ? sum + toHours(wall.time) : sum), 0);
      return hours > 0 ? [[gpuType, (micro * partOfMonth) / hours] as const] : [];
    }),
  );
}
