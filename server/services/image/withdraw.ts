import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction, systemContext } from "#server/context.ts";
import { type ImageVersionInput, imageVersionInput } from "#server/contracts/image.ts";
import { imageVersions } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { remove } from "#server/services/workspace/remove.ts";
import { loadProposal, proposalVersion } from "./load.ts";

/** Takes a proposal back that nobody has approved; a check of it ends. */
export async function withdraw(ctx: Context, raw: ImageVersionInput): Promise<Record<string, never>> {
  const { id } = parse(imageVersionInput, raw);
  await inTransaction(ctx, async (tx) => {
    const row = await loadProposal(tx, id);
    if (row.checkWorkspaceId !== null)
      await remove({ ...systemContext(tx.db), now: tx.now }, { id: row.checkWorkspaceId });
    // What it was named by may be proposed again.
    const nothing = { version: proposalVersion(id), definition: null, checkWorkspaceId: null };
    await tx.db
      .update(imageVersions)
      .set({ state: "retired", ...nothing })
      .where(eq(imageVersions.id, id));
    const detail = { name: row.name, version: row.version };
    await audit(tx, { action: "image.withdraw", subject: id, teamId: row.teamId ?? undefined, detail });
    await notify(tx.db, "environment", id);
  });
  return {};
}
