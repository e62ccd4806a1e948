import { formatGpuHours, formatShare } from "#components/format.ts";
import { Link } from "#components/ui/link.tsx";
import { usageHref } from "#components/utilisation/usage-question.ts";
import type { UtilisationRow } from "#server/contracts/utilisation.ts";

/** Who held most and used least, since a day (`from`, `to`: UTC); each name leads to where. */
export function MostIdle({ rows, from, to }: { rows: UtilisationRow[]; from: string; to: string }) {
  const all = { from, to, last: "", type: "", team: "", person: "", workspace: "", order: "idle" } as const;
  return (
    <ol className="divide-y divide-line rounded-lg border border-line bg-surface">
      {rows.map((row) => (
        <li key={row.id} className="flex flex-wrap items-baseline justify-between gap-x-6 px-3.5 py-2">
          <span>
            <Link
              href={usageHref({ ...all, person: row.id, by: "workspace" })}
              className="underline decoration-line-strong underline-offset-4 hover:decoration-current"
            >
              {row.name}
            </Link>
            {row.within && <span className="text-sm text-ink-2"> {row.within}</span>}
          </span>
          <span className="figures">
            {formatGpuHours(row.heldIdle)} GPU-h
            <span className="text-sm text-ink-2">, {formatShare(row.heldIdle, row.used + row.heldIdle)} of held</span>
          </span>
        </li>
      ))}
    </ol>
  );
}
