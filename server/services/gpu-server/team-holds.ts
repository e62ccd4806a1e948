import type { TeamHolds } from "#server/contracts/gpu-server.ts";
import { compareNames } from "#server/contracts/names.ts";

/** What each team holds of some leases, most first: pure. */
export function teamHolds(leases: readonly TeamHolds[]): TeamHolds[] {
  const teams = new Map<string, TeamHolds>();
  for (const { teamId, teamName, milli } of leases) {
    teams.set(teamId, { teamId, teamName, milli: (teams.get(teamId)?.milli ?? 0) + milli });
  }
  return [...teams.values()].sort((a, b) => b.milli - a.milli || compareNames(a.teamName, b.teamName));
}
