import { fits, smallerOf } from "#server/contracts/size-words.ts";
/** What can be chosen as a workspace's size, for the forms of a launch and of a workspace. */
import type { ChosenSize, CustomSize, SizeList, SizeView } from "#server/contracts/workspace-size.ts";

export type SizeChoices = {
  /** Offered to the team; what the launcher cannot give is `tooLarge`. */
  sizes: (SizeView & { tooLarge: boolean })[];
  /** The most that may be chosen freely; null: not by this person in this team. */
  custom: CustomSize | null;
  /** What the launcher can give at most, where that is known. */
  most: CustomSize | undefined;
};

/** What one may choose in a team for a workspace that this launcher runs. */
export function sizeChoices(list: SizeList, teamId: string, launcher: string): SizeChoices {
  const limit = list.launchers.find((each) => each.launcher === launcher);
  const most = limit && { cpuMilli: limit.maxCpuMilli, memoryBytes: limit.maxMemoryBytes };
  const rule = list.custom.find((each) => each.teamId === teamId);
  const sizes = list.sizes
    .filter(({ teamIds }) => teamIds === null || teamIds.includes(teamId))
    .map((size) => ({ ...size, tooLarge: !fits(size, most) }));
  const custom = rule?.mayChoose === true ? { cpuMilli: rule.maxCpuMilli, memoryBytes: rule.maxMemoryBytes } : null;
  return { sizes, custom: custom && smallerOf(custom, most), most };
}

/** What is chosen before anybody chooses: what was asked for where that can still be had, else what the API takes. */
export function firstChoice({ sizes, custom }: SizeChoices, asked: ChosenSize | undefined): ChosenSize | undefined {
  const free = sizes.filter(({ tooLarge }) => !tooLarge);
  if (typeof asked === "string") {
    const same = free.find(({ name }) => name.toLowerCase() === asked.toLowerCase());
    if (same !== undefined) return same.name;
  } else if (asked !== undefined && custom !== null && fits(asked, custom)) return asked;
  return (free.find(({ isDefault }) => isDefault) ?? free.at(-1))?.name;
}
