import { eq } from "drizzle-orm";
import { z } from "zod";
import { authorize, type Context } from "#server/context.ts";
import {
  type ImageVersionDetail,
  type ImageVersionInput,
  imageVersionInput,
  packageView,
} from "#server/contracts/image.ts";
import { imageVersions } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { readVersions } from "./version-view.ts";

/** A version of an environment with its packages and their licences. */
export async function getVersion(ctx: Context, raw: ImageVersionInput): Promise<ImageVersionDetail> {
  authorize(ctx.principal, "image.read-version");
  const { id } = parse(imageVersionInput, raw);
  const [view] = await readVersions(ctx, eq(imageVersions.id, id));
  if (view === undefined) throw new SluiceError("not-found", "There is no such version of an environment.");
  const [row] = await ctx.db
    .select({ packages: imageVersions.packages })
    .from(imageVersions)
    .where(eq(imageVersions.id, id));
  return {
    ...view,
    packages: z
      .array(packageView)
      .nullable()
      .parse(row?.packages ?? null),
  };
}
