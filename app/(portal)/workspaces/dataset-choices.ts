import type { DatasetChoice } from "#components/dataset/dataset-choice.ts";
import type { Context } from "#server/context.ts";
import { env } from "#server/env.ts";
import { unmountable } from "#server/launchers/mountable.ts";
import { list } from "#server/services/dataset/list.ts";

/** The datasets that somebody may choose from, each with why a launcher of this installation cannot mount it. */
export async function datasetChoices(ctx: Context): Promise<DatasetChoice[]> {
  const { datasets } = await list(ctx);
  return datasets.map(({ id, name, description, kind, team, writable, sizeBytes }) => ({
    ...{ id, name, description, writable, sizeBytes, teamId: team?.id ?? null },
    refusals: Object.fromEntries(
      env().SLUICE_LAUNCHERS.flatMap((launcher) => {
        const reason = unmountable(launcher, { name, kind });
        return reason === undefined ? [] : [[launcher, reason]];
      }),
    ),
  }));
}
