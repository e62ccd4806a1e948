import type { Me } from "#server/contracts/session.ts";
import type { StopList } from "#server/contracts/sharing.ts";

/** Whom a stop switch stops, in the words of this reader; nothing when it is no business of theirs. */
export function whoIsStopped(
  { scope, subjectId }: Pick<StopList["stops"][number], "scope" | "subjectId">,
  { id, isAdmin, teams }: Pick<Me, "id" | "isAdmin" | "teams">,
): string | undefined {
  if (scope === "all") return "anybody";
  if (scope === "user") return subjectId === id ? "you" : isAdmin ? "one person" : undefined;
  const team = teams.find((one) => one.id === subjectId);
  return team ? `team ${team.name}` : isAdmin ? "one team" : undefined;
}
