import { formatAmount } from "#components/format.ts";
import { Link } from "#components/ui/link.tsx";
import { Swatch } from "#components/ui/meter.tsx";
import type { TeamHolds } from "#server/contracts/gpu-server.ts";
import type { TeamKey } from "./team-key.ts";

/** Which team is which in the bars below, and how much each holds of the pool; a name leads to its servers. */
export function TeamLegend({ teams, teamKey }: { teams: TeamHolds[]; teamKey: TeamKey }) {
  if (teams.length === 0) return null;
  const milliOf = new Map(teams.map(({ teamId, milli }) => [teamId, milli]));
  const named = new Set(teamKey.map(({ teamId }) => teamId));
  const others = teams.filter(({ teamId }) => !named.has(teamId));
  return (
    <ul aria-label="GPUs held, by team" className="figures mb-3 flex flex-wrap gap-x-5 gap-y-1 text-sm">
      {teamKey.map(({ teamId, teamName, look }) => (
        <li key={teamId} className="inline-flex items-center gap-1.5">
          <Swatch look={look} />
          <Link
            href={`/pool?${new URLSearchParams({ search: teamName }).toString()}`}
            scroll={false}
            className="underline-offset-4 hover:underline"
          >
            {teamName}
          </Link>
          <span className="text-ink-2">{formatAmount(milliOf.get(teamId) ?? 0)}</span>
        </li>
      ))}
      {others.length > 0 && (
        <li className="inline-flex items-center gap-1.5">
          <Swatch look="rest" />
          {others.length} others
          <span className="text-ink-2">{formatAmount(others.reduce((sum, { milli }) => sum + milli, 0))}</span>
        </li>
      )}
    </ul>
  );
}
