import { and, desc, eq, type SQL, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type ImageList, type ImageView, proposal } from "#server/contracts/image.ts";
import { images, imageVersions, users } from "#server/db/schema/index.ts";
import { launcherFor } from "#server/launchers/choice.ts";
import { clusterSettings } from "#server/launchers/kubernetes/settings.ts";
import { forTeam, since } from "./order.ts";
import { startTimes } from "./start-times.ts";

/** The catalogue for whoever asks: each image with the newest approved version of their teams; for an admin, of all. */
export async function list(ctx: Context): Promise<ImageList> {
  const { principal } = ctx;
  authorize(principal, "image.list");
  const all = principal.kind !== "user" || principal.isAdmin;
  const of = all ? undefined : { teamIds: Object.keys(principal.teams) };
  const [found, seconds] = await Promise.all([readImages(ctx, of), startTimes(ctx)]);
  return { images: found.map((image) => ({ ...image, startSeconds: seconds.get(image.id) ?? null })) };
}

type Listed = Omit<ImageView, "startSeconds">;

/**
 * The same for callers inside, for one environment or for some teams, without how long they take to start. What the
 * cluster has no image for is in nobody's catalogue: each launch of it would fail.
 */
export async function readImages(ctx: Context, of: { name?: string; teamIds?: string[] } = {}): Promise<Listed[]> {
  const where: SQL | undefined = of.name === undefined ? undefined : eq(images.name, of.name);
  const rows = await ctx.db
    .select({
      image: images,
      version: imageVersions,
      packageCount: sql<number | null>`jsonb_array_length(${imageVersions.packages})`,
      approvedBy: users.name,
    })
    .from(images)
    .innerJoin(imageVersions, eq(imageVersions.imageId, images.id))
    .leftJoin(users, eq(users.id, imageVersions.approvedBy))
    .where(and(eq(imageVersions.state, "approved"), where))
    .orderBy(images.name, desc(since), desc(imageVersions.id));
  // Settings that cannot be read stop the broker, which says so.
  const cluster = await clusterSettings().catch(() => undefined);
  const views = new Map<string, Listed>();
  for (const { image, version, packageCount, approvedBy } of rows) {
    const { teamIds } = version;
    // Who is in no team yet looks at what everybody gets.
    if (of.teamIds !== undefined && teamIds !== null && !of.teamIds.some((each) => forTeam(teamIds, each))) continue;
    const proposed = version.proposal === null ? undefined : proposal.parse(version.proposal);
    const isHere =
      proposed?.source.kind === "image" || cluster === undefined || Object.hasOwn(cluster.environments, image.name);
    if (!isHere && launcherFor(image.name) === "kubernetes") continue;
    const approvedAt = version.approvedAt?.toISOString() ?? null;
    const atLeast = proposed?.atLeast ?? null;
    const launched = { id: version.id, version: version.version, teamIds, atLeast, approvedAt };
    const known = views.get(image.id);
    if (known !== undefined) {
      const isKept = version.check !== null || known.versions.every((each) => each.approvedAt !== null);
      if (isKept) known.versions.push(launched);
      known.older.push({ id: version.id, version: version.version });
      known.teamIds = known.teamIds === null || teamIds === null ? null : [...new Set([...known.teamIds, ...teamIds])];
      continue;
    }
    const { id, name, title, description } = image;
    const { buildState, buildMessage } = version;
    const approved = version.approvedAt === null ? null : { by: approvedBy, at: version.approvedAt.toISOString() };
    const newest = {
      id: version.id,
      version: version.version,
      buildState,
      buildMessage,
      packageCount,
      atLeast,
      approved,
    };
    views.set(id, { id, name, title, description, teamIds, version: newest, older: [], versions: [launched] });
  }
  return [...views.values()];
}
