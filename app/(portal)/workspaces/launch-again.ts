import { choicesFor } from "#components/dataset/dataset-choice.ts";
import type { LaunchAgain } from "#components/workspace/launch-again.tsx";
import { firstChoice, sizeChoices } from "#components/workspace/size-choice.ts";
import { launcherFor } from "#server/launchers/choice.ts";
import { readLaunchable } from "./launchable.ts";

/**
 * What launches the last one once more, under a name that is free; undefined when there was none, or when its
 * environment, team or one of its datasets is no longer to be had.
 */
export async function launchAgain(taken: readonly string[]): Promise<LaunchAgain | undefined> {
  const { last, images, person, datasets, sizes } = await readLaunchable();
  if (last === undefined) return undefined;
  const { title, ...asked } = last;
  const team = person.teams.find(({ id }) => id === asked.teamId);
  const image = images.find(({ name }) => name === asked.image);
  if (team === undefined || image === undefined) return undefined;
  if (!isFor(image, team.id)) return undefined;
  const version = image.versions.find(({ id }) => id === asked.versionId);
  if (asked.versionId !== undefined && (version === undefined || !isFor(version, team.id))) return undefined;
  const launcher = launcherFor(asked.image) ?? "";
  const mountable = choicesFor(datasets, team.id).filter(({ refusals }) => refusals[launcher] === undefined);
  const mounted = asked.datasets.map((id) => mountable.find((each) => each.id === id)?.name);
  if (mounted.some((name) => name === undefined)) return undefined;
  const size = firstChoice(sizeChoices(sizes, team.id, launcher), asked.size);
  return {
    asked: { ...asked, size, name: freeName(asked.name, taken) },
    like: { title, version: version?.version, team: team.name, datasets: mounted.flatMap((name) => name ?? []) },
  };
}

const isFor = ({ teamIds }: { teamIds: string[] | null }, teamId: string) =>
  teamIds === null || teamIds.includes(teamId);

/** `notebooks`, `notebooks-2`, …: the first that nobody has yet. */
export function freeName(wanted: string, taken: readonly string[]): string {
  if (!taken.includes(wanted)) return wanted;
  const stem = wanted.replace(/-\d+$/, "").slice(0, 50);
  for (let number = 2; ; number += 1) {
    if (!taken.includes(`${stem}-${number}`)) return `${stem}-${number}`;
  }
}
