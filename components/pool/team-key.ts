/** Which team has which look in the pool's bars. */
import { formatAmount } from "#components/format.ts";
import type { Segment, SegmentLook } from "#components/ui/meter.tsx";
import type { TeamHolds } from "#server/contracts/gpu-server.ts";
import { compareNames } from "#server/contracts/names.ts";

const LOOKS: SegmentLook[] = ["used", "ink", "held", "borrowed", "ink-dotted", "ink-barred"];

export type TeamKey = { teamId: string; teamName: string; look: SegmentLook }[];

/**
 * The teams that hold most, each with a look, then all others, which share one. By name, so that looks stay while
 * amounts change. Pure.
 */
export function teamKey(teams: readonly TeamHolds[]): TeamKey {
  const byName = (some: readonly TeamHolds[]) => [...some].sort((a, b) => compareNames(a.teamName, b.teamName));
  const inOrder = [...byName(teams.slice(0, LOOKS.length)), ...byName(teams.slice(LOOKS.length))];
  return inOrder.map(({ teamId, teamName }, at) => ({ teamId, teamName, look: LOOKS[at] ?? "rest" }));
}

/** What teams hold as the segments of a bar, in the key's order, all others in one; and the same in words. Pure. */
export function teamSegments(
  key: TeamKey,
  teams: readonly Pick<TeamHolds, "teamId" | "milli">[],
): { segments: Segment[]; words: string } {
  const held = new Map<string, number>();
  for (const { teamId, milli } of teams) held.set(teamId, (held.get(teamId) ?? 0) + milli);
  const parts = key
    .map(({ teamId, teamName, look }) => ({ name: teamName, look, value: held.get(teamId) ?? 0 }))
    .filter(({ value }) => value > 0);
  const wordsOf = (some: typeof parts) => some.map(({ name, value }) => `${name} ${formatAmount(value)}`).join(", ");
  const named = parts.filter(({ look }) => look !== "rest");
  const others = parts.filter(({ look }) => look === "rest");
  const segments: Segment[] = named.map((part) => ({
    ...{ key: part.name, value: part.value, look: part.look },
    title: wordsOf([part]),
  }));
  if (others.length > 0) {
    const value = others.reduce((sum, part) => sum + part.value, 0);
    segments.push({ key: "others", value, look: "rest", title: `others: ${wordsOf(others)}` });
  }
  return { segments, words: wordsOf(parts) || "nothing leased" };
}
