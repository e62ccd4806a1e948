import { ChevronRight } from "lucide-react";
import { formatAmount, plural } from "#components/format.ts";
import { Link } from "#components/ui/link.tsx";
import { Swatch } from "#components/ui/meter.tsx";
import type { TeamHolds } from "#server/contracts/gpu-server.ts";
import type { TeamKey } from "./team-key.ts";

/** Which team is which in the bars below, and how much each holds of the pool; a name leads to its servers. */
export function TeamLegend({ teams, teamKey }: { teams: TeamHolds[]; teamKey: TeamKey }) {
  if (teams.length === 0) return null;
  const milliOf = new Map(teams.map(({ teamId, milli }) => [teamId, milli]));
  const heldBy = (teamId: string) => milliOf.get(teamId) ?? 0;
  const others = teamKey.filter(({ look }) => look === "rest");
  return (
    <ul aria-label="GPUs held, by team" className="figures mb-3 flex flex-wrap gap-x-5 gap-y-1 text-sm">
      {teamKey
        .filter(({ look }) => look !== "rest")
        .map(({ teamId, teamName, look }) => (
          <li key={teamId} className="inline-flex items-center gap-1.5">
            <Swatch look={look} />
            <TeamHeld name={teamName} milli={heldBy(teamId)} />
          </li>
        ))}
      {others.length > 0 && (
        <li className="has-[[open]]:basis-full">
          <details className="group">
            <summary className="inline-flex items-center gap-1.5">
              <Swatch look="rest" />
              {plural(others.length, "other")}
              <span className="text-ink-2">
                {formatAmount(others.reduce((sum, { teamId }) => sum + heldBy(teamId), 0))}
              </span>
              <ChevronRight aria-hidden="true" className="size-3.5 text-ink-2 group-open:rotate-90" />
            </summary>
            <ul aria-label="Others" className="mt-1 flex flex-wrap gap-x-5 gap-y-1">
              {others.map(({ teamId, teamName }) => (
                <li key={teamId} className="inline-flex items-center gap-1.5">
                  <TeamHeld name={teamName} milli={heldBy(teamId)} />
                </li>
              ))}
            </ul>
          </details>
        </li>
      )}
    </ul>
  );
}

function TeamHeld({ name, milli }: { name: string; milli: number }) {
  return (
    <>
      <Link
        href={`/pool?${new URLSearchParams({ search: name }).toString()}`}
        scroll={false}
        className="underline-offset-4 hover:underline"
      >
        {name}
      </Link>
      <span className="text-ink-2">{formatAmount(milli)}</span>
    </>
  );
}
