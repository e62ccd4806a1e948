import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type RemoveSizeInput, removeSizeInput, type SizeList } from "#server/contracts/workspace-size.ts";
import { workspaceSizes } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { list } from "./list.ts";

/** Offers a size no longer. Workspaces that have it keep its cores and memory until somebody chooses another. */
export async function remove(ctx: Context, raw: RemoveSizeInput): Promise<SizeList> {
  authorize(ctx.principal, "workspace-size.edit");
  const { id } = parse(removeSizeInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const [row] = await tx.db.select().from(workspaceSizes).where(eq(workspaceSizes.id, id)).for("update");
    if (row === undefined) throw new SluiceError("not-found", "There is no such size. Reload the page.");
    if (row.isDefault) {
      throw new SluiceError(
        "conflict",
        `${row.name} is what a launch gets that names no size. Make another the default first.`,
      );
    }
    await tx.db.delete(workspaceSizes).where(eq(workspaceSizes.id, id));
    const before = { ...row, createdAt: undefined };
    await audit(tx, { action: "workspace-size.remove", subject: id, detail: { before } });
    await notify(tx.db, "size", id);
    return await list(tx);
  });
}
