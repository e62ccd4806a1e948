import type { DatasetChoice } from "#components/dataset/dataset-choice.ts";
import type { Context } from "#server/context.ts";
import { env } from "#server/env.ts";
import { unmountable } from "#server/launchers/mountable.ts";
import { choices } from "#server/services/dataset/choices.ts";

/** The datasets that somebody may choose from, each with why a launcher of this installation cannot mount it. */
export async function datasetChoices(ctx: Context): Promise<DatasetChoice[]> {
  return (await choices(ctx)).map(({ kind, ...dataset }) => ({
    ...dataset,
    refusals: Object.fromEntries(
      env().SLUICE_LAUNCHERS.flatMap((launcher) => {
        const reason = unmountable(launcher, { name: dataset.name, kind });
        return reason === undefined ? [] : [[launcher, reason]];
      }),
    ),
  }));
}
