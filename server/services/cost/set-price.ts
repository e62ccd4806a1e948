import { eq, sql } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type GpuPriceList, type SetPriceInput, setPriceInput } from "#server/contracts/cost.ts";
import { gpuPrices, gpus } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { prices } from "./prices.ts";

/** Sets what a GPU type costs, in every month that is not closed. */
export async function setPrice(ctx: Context, raw: SetPriceInput): Promise<GpuPriceList> {
  authorize(ctx.principal, "cost.set-price");
  const { type: gpuType, basis, amount, version } = parse(setPriceInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const [known] = await tx.db.select({ id: gpus.id }).from(gpus).where(eq(gpus.gpuType, gpuType)).limit(1);
    if (known === undefined) throw new SluiceError("not-found", `The pool has no GPU of the type ${gpuType}.`);
    const [before] = await tx.db.select().from(gpuPrices).where(eq(gpuPrices.gpuType, gpuType)).for("update");
    refuseStale(version, before, `the price of ${gpuType}`);
    const changedBy = tx.principal.kind === "user" ? tx.principal.userId : null;
    const price = { basis, micro: Math.round(amount * 1e6), changedAt: tx.now(), changedBy };
    await tx.db
      .insert(gpuPrices)
      .values({ gpuType, ...price })
      .onConflictDoUpdate({ target: gpuPrices.gpuType, set: { ...price, version: sql`${gpuPrices.version} + 1` } });
    await audit(tx, {
      action: "cost.set-price",
      subject: gpuType,
      detail: {
        before: before === undefined ? null : { basis: before.basis, amount: before.micro / 1e6 },
        after: { basis, amount },
      },
    });
    return await prices(tx);
  });
}
