import { and, inArray, not, or, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { ImageVersionList } from "#server/contracts/image.ts";
import { imageVersions } from "#server/db/schema/index.ts";
import { wasApproved, withdrawn } from "./order.ts";
import { readVersions } from "./version-view.ts";

/** Every version of every environment, retired ones too; a lead sees the proposals of the own teams alone. */
export async function listVersions(ctx: Context): Promise<ImageVersionList> {
  const { principal } = ctx;
  authorize(principal, "image.list-versions");
  if (principal.kind !== "user" || principal.isAdmin) return { versions: await readVersions(ctx, not(withdrawn)) };
  const teams = Object.keys(principal.teams);
  const own = teams.length === 0 ? sql`false` : inArray(imageVersions.teamId, teams);
  return { versions: await readVersions(ctx, and(not(withdrawn), or(wasApproved, own))) };
}
