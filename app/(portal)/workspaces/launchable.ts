import { cache } from "react";
import { list as listImages } from "#server/services/image/list.ts";
import { me } from "#server/services/session/me.ts";
import { lastLaunch } from "#server/services/workspace/last-launch.ts";
import { list as listSizes } from "#server/services/workspace-size/list.ts";
import { load, pageContext } from "../../page-context.ts";
import { datasetChoices } from "./dataset-choices.ts";

/** What the person of this request may launch and what they launched last, read once for all of a page that asks. */
export const readLaunchable = cache(async () => {
  const ctx = await pageContext();
  const [{ images }, person, datasets, sizes, last] = await load(() =>
    Promise.all([listImages(ctx), me(ctx), datasetChoices(ctx), listSizes(ctx), lastLaunch(ctx)]),
  );
  return { images, person, datasets, sizes, last };
});
