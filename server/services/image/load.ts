import { eq } from "drizzle-orm";
import { isAllowed } from "#server/auth/authorize.ts";
import type { Principal } from "#server/auth/principal.ts";
import { authorize, type Context } from "#server/context.ts";
import { images, imageVersions } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";

export type VersionRow = typeof imageVersions.$inferSelect;

/** Whether somebody may see a version: what was approved is everybody's to know, a proposal the team's and admins'. */
export function mayRead(principal: Principal, row: Pick<VersionRow, "check" | "approvedAt" | "teamId">): boolean {
  if (row.check === null || row.approvedAt !== null) return true;
  return isAllowed(principal, "team.read", row.teamId === null ? {} : { teamId: row.teamId });
}

/** A version and its environment's word; to whoever may not see it, there is none. `lock` holds it until the end. */
export async function loadVersion(
  ctx: Context,
  id: string,
  options: { lock?: boolean } = {},
): Promise<VersionRow & { name: string }> {
  authorize(ctx.principal, "image.read-version");
  const query = ctx.db
    .select({ row: imageVersions, name: images.name })
    .from(imageVersions)
    .innerJoin(images, eq(images.id, imageVersions.imageId))
    .where(eq(imageVersions.id, id));
  const [found] = options.lock === true ? await query.for("update", { of: imageVersions }) : await query;
  if (found === undefined || !mayRead(ctx.principal, found.row)) {
    throw new SluiceError("not-found", "There is no such version of an environment.");
  }
  return { ...found.row, name: found.name };
}

/** The same, of a proposal that whoever asks may check and take back. */
export async function loadProposal(ctx: Context, id: string): Promise<VersionRow & { name: string }> {
  const row = await loadVersion(ctx, id, { lock: true });
  authorize(ctx.principal, "image.propose", row.teamId === null ? {} : { teamId: row.teamId });
  if (row.check === null || row.approvedAt !== null || row.state === "retired") {
    throw new SluiceError("conflict", `${row.name} ${row.version} is no proposal.`);
  }
  return row;
}

/** What a proposal is called before it is locked, when it has no content to be named by. */
export const proposalVersion = (id: string): string => `proposal-${id.slice(-6)}`;
