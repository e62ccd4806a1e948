import { and, eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type EditSizeInput, editSizeInput, type SizeList } from "#server/contracts/workspace-size.ts";
import { workspaceSizes, workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { isThereOrRestorable } from "#server/services/workspace/kept-files.ts";
import { list } from "./list.ts";
import { prepareDefault, refuseTaken, refuseUnknownTeams } from "./write.ts";

/** Changes a size. Workspaces that have it get the new one when they are next started. */
export async function edit(ctx: Context, raw: EditSizeInput): Promise<SizeList> {
  authorize(ctx.principal, "workspace-size.edit");
  const { id, version, ...set } = parse(editSizeInput, raw);
  return await refuseTaken(set.name, () =>
    inTransaction(ctx, async (tx) => {
      const [row] = await tx.db.select().from(workspaceSizes).where(eq(workspaceSizes.id, id)).for("no key update");
      if (row === undefined) throw new SluiceError("not-found", "There is no such size. Reload the page.");
      refuseStale(version, row, `the size ${row.name}`);
      if (row.isDefault && !set.isDefault) {
        throw new SluiceError("invalid", "isDefault: Make another size the default; then this one no longer is.");
      }
      await refuseUnknownTeams(tx, set.teamIds);
      await prepareDefault(tx, set);
      await tx.db
        .update(workspaceSizes)
        .set({ ...set, version: row.version + 1 })
        .where(eq(workspaceSizes.id, id));
      const changed = await tx.db
        .update(workspaces)
        .set({ sizeCpuMilli: set.cpuMilli, sizeMemoryBytes: set.memoryBytes })
        .where(and(eq(workspaces.sizeId, id), isThereOrRestorable()))
        .returning({ id: workspaces.id });
      const detail = { before: { ...row, createdAt: undefined }, after: set, workspaces: changed.length };
      await audit(tx, { action: "workspace-size.edit", subject: id, detail });
      await notify(tx.db, "size", id);
      return await list(tx);
    }),
  );
}
