import { authorize, type Context } from "#server/context.ts";
import type { ImageVersionList } from "#server/contracts/image.ts";
import { readVersions } from "./version-view.ts";

/** Every version of every environment, retired ones too. */
export async function listVersions(ctx: Context): Promise<ImageVersionList> {
  authorize(ctx.principal, "image.list-versions");
  return { versions: await readVersions(ctx) };
}
