import { eq } from "drizzle-orm";
import { z } from "zod";
import type { Context } from "#server/context.ts";
import {
  type ImageVersionDetail,
  type ImageVersionInput,
  imageVersionInput,
  packageView,
} from "#server/contracts/image.ts";
import { imageVersions } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { loadVersion } from "./load.ts";
import { readVersions } from "./version-view.ts";

/** A version of an environment with its packages and their licences. */
export async function getVersion(ctx: Context, raw: ImageVersionInput): Promise<ImageVersionDetail> {
  const { id } = parse(imageVersionInput, raw);
  const { packages, lock } = await loadVersion(ctx, id);
  const [view] = await readVersions(ctx, eq(imageVersions.id, id));
  if (view === undefined) throw new SluiceError("not-found", "There is no such version of an environment.");
  return { ...view, packages: z.array(packageView).nullable().parse(packages), lock };
}
