import { authorize, type Context } from "#server/context.ts";
import type { GpuPriceList } from "#server/contracts/cost.ts";
import { gpuPrices } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";

/** Today's prices, for admins. */
export async function prices(ctx: Context): Promise<GpuPriceList> {
  authorize(ctx.principal, "cost.set-price");
  const rows = await ctx.db.select().from(gpuPrices).orderBy(gpuPrices.gpuType);
  return {
    currency: env().SLUICE_CURRENCY,
    prices: rows.map(({ gpuType, basis, micro, changedAt, version }) => ({
      gpuType,
      basis,
      version,
      amount: micro / 1e6,
      changedAt: changedAt.toISOString(),
    })),
  };
}
