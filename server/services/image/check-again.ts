import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type ImageVersionInput, type ImageVersionView, imageVersionInput } from "#server/contracts/image.ts";
import { imageVersions } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { loadProposal } from "./load.ts";
import { refuseTooMany } from "./refuse-too-many.ts";
import { readVersions } from "./version-view.ts";

/** Has a proposal checked once more; what is locked and built of it stays. */
export async function checkAgain(ctx: Context, raw: ImageVersionInput): Promise<ImageVersionView> {
  const { id } = parse(imageVersionInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadProposal(tx, id);
    if (row.check === "waiting" || row.check === "running") {
      throw new SluiceError("conflict", `${row.name} is being checked already.`);
    }
    if (row.teamId !== null) await refuseTooMany(tx, row.teamId, "check");
    await tx.db
      .update(imageVersions)
      .set({ check: "waiting", checkMessage: null, checkRun: row.checkRun + 1 })
      .where(eq(imageVersions.id, id));
    const detail = { name: row.name, version: row.version };
    await audit(tx, { action: "image.check-again", subject: id, teamId: row.teamId ?? undefined, detail });
    await notify(tx.db, "environment", id);
    const [view] = await readVersions(tx, eq(imageVersions.id, id));
    if (view === undefined) throw new SluiceError("internal", "The version is gone.");
    return view;
  });
}
