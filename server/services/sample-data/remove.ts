import { authorize, type Context } from "#server/context.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";

/** By which the start script hears of it. */
export const SAMPLE_DATA = "sample-data";

/**
 * Ends a portal on sample data (`npm start -- --demo`) and removes them, the database itself included, so that there
 * is nothing to audit it in. The installation of that state directory starts in its place.
 */
export async function removeSampleData(ctx: Context): Promise<Record<string, never>> {
  authorize(ctx.principal, "sample-data.remove");
  if (!env().SLUICE_SAMPLE_DATA) throw new SluiceError("not-found", "There are no sample data here.");
  await notify(ctx.db, "setup", SAMPLE_DATA);
  return {};
}
