import { and, eq, sql } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type ImageVersionView, type SetVersionStateInput, setVersionStateInput } from "#server/contracts/image.ts";
import { images, imageVersions } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { newer, wasApproved } from "./order.ts";
import { readVersions } from "./version-view.ts";

/**
 * Retires an environment's newest version with all before it, or approves it again with all that was retired with it, each
 * for whom it was before. Nobody launches with what is retired; workspaces that have it keep it.
 */
export async function setState(ctx: Context, raw: SetVersionStateInput): Promise<ImageVersionView> {
  authorize(ctx.principal, "image.set-state");
  const { id, state } = parse(setVersionStateInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const [row] = await tx.db
      .select({ version: imageVersions, name: images.name })
      .from(imageVersions)
      .innerJoin(images, eq(images.id, imageVersions.imageId))
      .where(eq(imageVersions.id, id))
      .for("update", { of: imageVersions });
    if (row === undefined) throw new SluiceError("not-found", "There is no such version of an environment.");
    const { imageId } = row.version;
    const [known] = await tx.db
      .select({ wasApproved: sql<boolean>`${wasApproved}`, newest: sql<boolean>`not exists (${newer(sql`true`)})` })
      .from(imageVersions)
      .where(eq(imageVersions.id, id));
    if (known?.wasApproved !== true) {
      throw new SluiceError(
        "conflict",
        `${row.name} ${row.version.version} is a proposal: approve it, or take it back.`,
      );
    }
    if (!known.newest) {
      throw new SluiceError("conflict", `There is a newer version of ${row.name}. Retire or approve that one.`);
    }
    if (row.version.state !== state) {
      const ofImage = eq(imageVersions.imageId, imageId);
      const { retiredWith } = row.version;
      if (state === "retired") {
        // What is retired already stays so when this one comes back.
        const offered = and(ofImage, eq(imageVersions.state, "approved"));
        await tx.db.update(imageVersions).set({ state, retiredWith: id }).where(offered);
      } else {
        const together = retiredWith === null ? eq(imageVersions.id, id) : eq(imageVersions.retiredWith, retiredWith);
        await tx.db.update(imageVersions).set({ state, retiredWith: null }).where(and(ofImage, together));
      }
      const detail = { name: row.name, version: row.version.version, before: row.version.state, after: state };
      await audit(tx, { action: state === "retired" ? "image.retire" : "image.approve", subject: id, detail });
      await notify(tx.db, "setup", id);
    }
    const [view] = await readVersions(tx, eq(imageVersions.id, id));
    if (view === undefined) throw new SluiceError("internal", "The version is gone.");
    return view;
  });
}
