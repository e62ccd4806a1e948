import { Meter } from "#components/ui/meter.tsx";
import type { TeamHolds } from "#server/contracts/gpu-server.ts";
import { type TeamKey, teamSegments } from "./team-key.ts";

/** What teams hold of a device, a server or more, side by side; `what` says of which. */
export function TeamBar({
  teams,
  teamKey,
  max,
  what,
  size,
}: {
  teams: readonly Pick<TeamHolds, "teamId" | "milli">[];
  teamKey: TeamKey;
  /** All that there is, thousandths of a GPU. */
  max: number;
  what: string;
  size: "sm" | "md" | "lg";
}) {
  const { segments, words } = teamSegments(teamKey, teams);
  return <Meter size={size} max={max} segments={segments} label={`${what}: ${words}`} />;
}
