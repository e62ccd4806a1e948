import { count, desc, eq, ne, type SQL, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { ImageVersionView } from "#server/contracts/image.ts";
import { images, imageVersions, workspaces } from "#server/db/schema/index.ts";

/** Versions of environments by title, the newest of each first. */
export async function readVersions(ctx: Context, where?: SQL): Promise<ImageVersionView[]> {
  const used = ctx.db
    .select({ versionId: workspaces.imageVersionId, n: count().as("n") })
    .from(workspaces)
    .where(ne(workspaces.desired, "removed"))
    .groupBy(workspaces.imageVersionId)
    .as("used");
  const rows = await ctx.db
    .select({
      image: images,
      ...{ id: imageVersions.id, version: imageVersions.version, state: imageVersions.state },
      ...{ buildState: imageVersions.buildState, buildMessage: imageVersions.buildMessage },
      ...{ builtAt: imageVersions.builtAt, createdAt: imageVersions.createdAt },
      packageCount: sql<number | null>`jsonb_array_length(${imageVersions.packages})`,
      newest: sql<boolean>`not exists (${newer(sql`true`)})`,
      // As the launch page chooses.
      offered: sql<boolean>`${imageVersions.state} = 'approved' and not exists (${newer(sql`n.state = 'approved'`)})`,
      workspaces: used.n,
    })
    .from(imageVersions)
    .innerJoin(images, eq(images.id, imageVersions.imageId))
    .leftJoin(used, eq(used.versionId, imageVersions.id))
    .where(where)
    .orderBy(images.title, images.id, desc(imageVersions.createdAt), desc(imageVersions.id));
  return rows.map(({ image: { id, name, title, description }, ...row }) => ({
    ...row,
    image: { id, name, title, description },
    builtAt: row.builtAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    workspaces: row.workspaces ?? 0,
  }));
}

/** A newer version of the same environment. */
const newer = (
  which: SQL,
) => sql`select 1 from image_versions n where n.image_id = ${imageVersions.imageId} and ${which}
  and (n.created_at, n.id) > (${imageVersions.createdAt}, ${imageVersions.id})`;
