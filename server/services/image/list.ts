import { and, desc, eq, type SQL } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { ImageList, ImageView } from "#server/contracts/image.ts";
import { images, imageVersions } from "#server/db/schema/index.ts";

/** The catalogue: each image with its newest approved version. */
export async function list(ctx: Context): Promise<ImageList> {
  authorize(ctx.principal, "image.list");
  return { images: await readImages(ctx) };
}

/** The same for callers inside, with a condition. */
export async function readImages(ctx: Context, where?: SQL): Promise<ImageView[]> {
  const rows = await ctx.db
    .selectDistinctOn([images.name], { image: images, version: imageVersions })
    .from(images)
    .innerJoin(imageVersions, eq(imageVersions.imageId, images.id))
    .where(and(eq(imageVersions.state, "approved"), where))
    .orderBy(images.name, desc(imageVersions.createdAt), desc(imageVersions.id));
  return rows.map(({ image, version }) => ({
    id: image.id,
    name: image.name,
    title: image.title,
    description: image.description,
    version: {
      id: version.id,
      version: version.version,
      buildState: version.buildState,
      buildMessage: version.buildMessage,
    },
  }));
}
