import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type GpuPriceList, type RemovePriceInput, removePriceInput } from "#server/contracts/cost.ts";
import { gpuPrices } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { prices } from "./prices.ts";

/** Removes the price of a GPU type: in months that are not closed its hours cost nothing. */
export async function removePrice(ctx: Context, raw: RemovePriceInput): Promise<GpuPriceList> {
  authorize(ctx.principal, "cost.set-price");
  const { type: gpuType, version } = parse(removePriceInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const [before] = await tx.db.select().from(gpuPrices).where(eq(gpuPrices.gpuType, gpuType)).for("update");
    refuseStale(version, before, `the price of ${gpuType}`);
    if (before === undefined) throw new SluiceError("not-found", `${gpuType} has no price.`);
    await tx.db.delete(gpuPrices).where(eq(gpuPrices.gpuType, gpuType));
    const detail = { before: { basis: before.basis, amount: before.micro / 1e6 } };
    await audit(tx, { action: "cost.remove-price", subject: gpuType, detail });
    return await prices(tx);
  });
}
