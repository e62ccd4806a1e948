/** What may not be launched, anew or as a copy. */
import { eq, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { images, imageVersions } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { forTeam } from "#server/services/image/order.ts";

/** Refuses to run anything where what the pages show is made up. */
export function refuseBesideSampleData(): void {
  if (env().SLUICE_SAMPLE_DATA) {
    throw new SluiceError("conflict", "Nothing is launched beside sample data. Remove them (top of the page) first.");
  }
}

/** Refuses a version that is retired, still a proposal, or rolled out to other teams alone. */
export async function refuseNotOffered(ctx: Context, versionId: string | null, teamId: string): Promise<void> {
  const [row] = await ctx.db
    .select({ title: images.title, state: imageVersions.state, teamIds: imageVersions.teamIds })
    .from(imageVersions)
    .innerJoin(images, eq(images.id, imageVersions.imageId))
    .where(versionId === null ? sql`false` : eq(imageVersions.id, versionId));
  if (row?.state === "approved" && forTeam(row.teamIds, teamId)) return;
  throw new SluiceError(
    "refused",
    `Its version of ${row?.title ?? "the environment"} is not offered to your team. Launch a workspace with one that is.`,
  );
}
