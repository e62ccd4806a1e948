import { eq } from "drizzle-orm";
import { type Action, isAllowed } from "#server/auth/authorize.ts";
import { authorize, type Context } from "#server/context.ts";
import { datasets } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";

export type DatasetRow = typeof datasets.$inferSelect;

/** The dataset, held until the transaction ends, when the principal may do `action` to it. What one may not see is not there. */
export async function loadDataset(ctx: Context, id: string, action: Action): Promise<DatasetRow> {
  authorize(ctx.principal, "dataset.list");
  const [row] = await ctx.db.select().from(datasets).where(eq(datasets.id, id)).for("update");
  const resource = { teamId: row?.teamId ?? undefined };
  if (row === undefined || !isAllowed(ctx.principal, "dataset.read", resource)) {
    throw new SluiceError("not-found", "There is no such dataset, or it is not yours to see.");
  }
  authorize(ctx.principal, action, resource);
  return row;
}
