"use client";

import { formatCount, formatDuration, formatGpuHours, formatShare } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Link } from "#components/ui/link.tsx";
import type { UtilisationRow } from "#server/contracts/utilisation.ts";
import { effectiveShare, effectiveWords } from "./effective.ts";
import { narrowed, type UsageQuestion, usageHref } from "./usage-question.ts";

const held = (row: UtilisationRow) => row.used + row.heldIdle;
const none = <span className="text-ink-2">–</span>;
const words = { team: "Team", person: "Person", type: "GPU type", workspace: "Workspace" } as const;

/** Who had the time: held, used and effective, borrowed and lent, waited for, promised and delivered; each row leads to its part. */
export function UtilisationTable({ rows, question }: { rows: UtilisationRow[]; question: UsageQuestion }) {
  const { by } = question;
  const hours = (
    id: string,
    header: string,
    value: (row: UtilisationRow) => number | null,
    from?: Column<UtilisationRow>["from"],
  ): Column<UtilisationRow> => ({
    ...{ id, header, from, align: "right" },
    sort: (row) => value(row) ?? -1,
    cell: (row) => {
      const found = value(row);
      return found === null ? none : formatGpuHours(found);
    },
  });
  const wait = (id: string, header: string, value: (row: UtilisationRow) => number | null): Column<UtilisationRow> => ({
    ...{ id, header, align: "right", from: "lg" },
    sort: (row) => value(row) ?? -1,
    cell: (row) => {
      const found = value(row);
      return found === null ? none : formatDuration(found * 1000);
    },
  });
  return (
    <DataTable
      caption={`Usage by ${words[by].toLowerCase()}`}
      rows={rows}
      rowKey={(row) => row.id}
      columns={[
        {
          id: "name",
          header: words[by],
          sort: (row) => row.name,
          cell: (row) => (
            <div className="min-w-20">
              <Link
                href={usageHref(narrowed(question, row.id))}
                className="underline decoration-line-strong underline-offset-4 hover:decoration-current"
              >
                {row.name}
              </Link>
              {row.within && <p className="text-sm text-ink-2">{row.within}</p>}
            </div>
          ),
        },
        hours("held", "Held, GPU-h", held),
        hours("used", "Used, GPU-h", (row) => row.used, "sm"),
        {
          ...{ id: "share", header: "Used of held", align: "right", from: "sm" },
          sort: (row) => (held(row) > 0 ? row.used / held(row) : -1),
          cell: (row) => formatShare(row.used, held(row)),
        },
        {
          ...{ id: "effective", header: "Effective", align: "right", from: "md" },
          sort: (row) => effectiveShare(row) ?? -1,
          cell: (row) => <span className={row.effective === null ? "text-ink-2" : ""}>{effectiveWords(row)}</span>,
        },
        hours("borrowed", "Borrowed", (row) => row.borrowed, "md"),
        ...(by === "team" ? [hours("lent", "Lent", (row) => row.lent, "md")] : []),
        {
          ...{ id: "grants", header: "Grants", align: "right", from: "lg" },
          sort: (row) => row.grants,
          cell: (row) => formatCount(row.grants),
        },
        wait("wait", "Median wait", (row) => row.waitMedian),
        wait("wait95", "95 % waited", (row) => row.waitP95),
        {
          ...{ id: "delivered", header: "Received of promised", align: "right", from: "2xl" },
          sort: (row) => (row.promised > 0 ? row.delivered / row.promised : -1),
          cell: (row) => formatShare(row.delivered, row.promised),
        },
      ]}
    />
  );
}
