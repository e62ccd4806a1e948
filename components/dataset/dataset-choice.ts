import { formatBytes } from "#components/format.ts";

/** A dataset that can be chosen for a workspace. */
export type DatasetChoice = {
  id: string;
  name: string;
  description: string;
  /** Whose it is; null: everybody's. */
  teamId: string | null;
  writable: boolean;
  sizeBytes: number | null;
  /** Launcher → why it cannot mount it. */
  refusals: Record<string, string>;
};

/** What a workspace of a team can choose from: everybody's and the team's own. */
export const choicesFor = (choices: readonly DatasetChoice[], teamId: string) =>
  choices.filter((each) => each.teamId === null || each.teamId === teamId);

/** `read-only, 4.0 GiB`. */
export function accessAndSize({ writable, sizeBytes }: { writable: boolean; sizeBytes: number | null }): string {
  const access = writable ? "may be written to" : "read-only";
  return sizeBytes === null ? access : `${access}, ${formatBytes(sizeBytes)}`;
}
