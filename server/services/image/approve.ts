import { eq, inArray } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type ApproveVersionInput,
  approveVersionInput,
  type ImageVersionView,
  proposal,
} from "#server/contracts/image.ts";
import { images, imageVersions, teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { loadVersion } from "./load.ts";
import { readVersions } from "./version-view.ts";

/**
 * Approves what has passed its check and rolls it out: launches of these teams take it from now on. Workspaces that
 * have an older version keep it and are offered this one. Approved again, it is for the teams that are named now.
 */
export async function approve(ctx: Context, raw: ApproveVersionInput): Promise<ImageVersionView> {
  const { principal } = ctx;
  authorize(principal, "image.set-state");
  const { id, teamIds } = parse(approveVersionInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadVersion(tx, id, { lock: true });
    if (row.check === null)
      throw new SluiceError("conflict", `${row.name} comes with this installation; nobody proposed it.`);
    if (row.check !== "passed")
      throw new SluiceError("conflict", `${row.name} ${row.version} has not passed its check.`);
    if (row.state === "retired") throw new SluiceError("conflict", `${row.name} ${row.version} is retired.`);
    const known = teamIds && (await tx.db.select({ id: teams.id }).from(teams).where(inArray(teams.id, teamIds)));
    if (teamIds !== null && known?.length !== new Set(teamIds).size) {
      throw new SluiceError("not-found", "teamIds: There is no such team.");
    }
    const { title, description } = proposal.parse(row.proposal);
    await tx.db
      .update(imageVersions)
      .set({
        ...{ state: "approved", teamIds },
        approvedAt: row.approvedAt ?? tx.now(),
        approvedBy: principal.kind === "user" ? principal.userId : null,
      })
      .where(eq(imageVersions.id, id));
    await tx.db.update(images).set({ title, description }).where(eq(images.id, row.imageId));
    const detail = { name: row.name, version: row.version, before: row.state, after: "approved", teamIds };
    await audit(tx, { action: "image.approve", subject: id, teamId: row.teamId ?? undefined, detail });
    await notify(tx.db, "environment", id);
    await notify(tx.db, "workspace", id);
    const [view] = await readVersions(tx, eq(imageVersions.id, id));
    if (view === undefined) throw new SluiceError("internal", "The version is gone.");
    return view;
  });
}
