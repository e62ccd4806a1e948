import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type CloseMonthInput, type CostReport, closeMonthInput } from "#server/contracts/cost.ts";
import { costMonths } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { compute } from "./compute.ts";
import { firstMonth } from "./first-month.ts";
import { monthOf } from "./month.ts";

/** Keeps a month's report as it is: prices and names that change later change it no more, and nobody can undo it. */
export async function closeMonth(ctx: Context, raw: CloseMonthInput): Promise<CostReport> {
  authorize(ctx.principal, "cost.close-month");
  const { month } = parse(closeMonthInput, raw);
  if (month >= monthOf(ctx.now())) throw new SluiceError("conflict", "A month is closed when it is over.");
  const first = await firstMonth(ctx);
  if (month < first) {
    throw new SluiceError("conflict", `The pool had no GPU before ${first}: ${month} has no costs to close.`);
  }
  return await inTransaction(ctx, async (tx) => {
    const open = await compute(tx, month, "workspace");
    if (open.unpriced.length > 0) {
      throw new SluiceError("conflict", `Set a price for ${open.unpriced.join(", ")} first: it was in the pool.`);
    }
    const by = tx.principal.kind === "user" ? tx.principal.name : "Sluice";
    const report: CostReport = { ...open, closed: { at: tx.now().toISOString(), by } };
    const written = await tx.db
      .insert(costMonths)
      .values({ month, closedAt: tx.now(), closedBy: by, report })
      .onConflictDoNothing()
      .returning({ month: costMonths.month });
    if (written.length === 0) throw new SluiceError("conflict", "This month is closed already.");
    const detail = { month, cents: report.cents, currency: report.currency };
    await audit(tx, { action: "cost.close-month", subject: month, detail });
    return report;
  });
}
