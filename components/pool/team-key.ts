/** Which team has which look in the pool's bars. */
import { formatAmount } from "#components/format.ts";
import type { Segment, SegmentLook } from "#components/ui/meter.tsx";
import type { TeamHolds } from "#server/contracts/gpu-server.ts";
import { compareNames } from "#server/contracts/names.ts";

const LOOKS: SegmentLook[] = ["used", "ink", "held", "borrowed", "ink-pale", "ink-striped"];

export type TeamKey = { teamId: string; teamName: string; look: SegmentLook }[];

/**
 * The teams that hold most, each with a look; all others share one. By name, so that looks stay while amounts change.
 * Pure.
 */
export function teamKey(teams: readonly TeamHolds[]): TeamKey {
  const most = teams.slice(0, LOOKS.length).sort((a, b) => compareNames(a.teamName, b.teamName));
  return most.map(({ teamId, teamName }, at) => ({ teamId, teamName, look: LOOKS[at] ?? "rest" }));
}

/** What teams hold as the segments of a bar, in the key's order, and the same in words. Pure. */
export function teamSegments(
  key: TeamKey,
  teams: readonly Pick<TeamHolds, "teamId" | "milli">[],
): { segments: Segment[]; words: string } {
  const held = new Map<string, number>();
  for (const { teamId, milli } of teams) held.set(teamId, (held.get(teamId) ?? 0) + milli);
  const named = key.map(({ teamId, teamName, look }) => ({ name: teamName, look, value: held.get(teamId) ?? 0 }));
  const sum = (parts: readonly number[]) => parts.reduce((all, part) => all + part, 0);
  const others = sum([...held.values()]) - sum(named.map(({ value }) => value));
  const parts = [...named, { name: "others", look: "rest" as const, value: others }].filter(({ value }) => value > 0);
  return {
    segments: parts.map(({ name, look, value }) => ({
      key: name,
      value,
      look,
      title: `${name} ${formatAmount(value)}`,
    })),
    words: parts.map(({ name, value }) => `${name} ${formatAmount(value)}`).join(", ") || "nothing leased",
  };
}
