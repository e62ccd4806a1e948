import { and, desc, eq, type SQL } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { ImageList, ImageView } from "#server/contracts/image.ts";
import { images, imageVersions } from "#server/db/schema/index.ts";
import { forTeam, since } from "./order.ts";

/** The catalogue for whoever asks: each image with the newest approved version of their teams; for an admin, of all. */
export async function list(ctx: Context): Promise<ImageList> {
  const { principal } = ctx;
  authorize(principal, "image.list");
  const all = principal.kind !== "user" || principal.isAdmin;
  return { images: await readImages(ctx, all ? undefined : { teamIds: Object.keys(principal.teams) }) };
}

/** The same for callers inside, for one environment or for some teams. */
export async function readImages(ctx: Context, of: { name?: string; teamIds?: string[] } = {}): Promise<ImageView[]> {
  const where: SQL | undefined = of.name === undefined ? undefined : eq(images.name, of.name);
  const rows = await ctx.db
    .select({ image: images, version: imageVersions })
    .from(images)
    .innerJoin(imageVersions, eq(imageVersions.imageId, images.id))
    .where(and(eq(imageVersions.state, "approved"), where))
    .orderBy(images.name, desc(since), desc(imageVersions.id));
  const views = new Map<string, ImageView>();
  for (const { image, version } of rows) {
    const { teamIds } = version;
    // Who is in no team yet looks at what everybody gets.
    if (of.teamIds !== undefined && teamIds !== null && !of.teamIds.some((each) => forTeam(teamIds, each))) continue;
    const known = views.get(image.id);
    if (known !== undefined) {
      known.teamIds = known.teamIds === null || teamIds === null ? null : [...new Set([...known.teamIds, ...teamIds])];
      continue;
    }
    const { id, name, title, description } = image;
    const { buildState, buildMessage } = version;
    const newest = { id: version.id, version: version.version, buildState, buildMessage };
    views.set(id, { id, name, title, description, teamIds, version: newest });
  }
  return [...views.values()];
}
