"use client";

import { formatAmount, formatBytes } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { ExactTime } from "#components/ui/time.tsx";
import type { AuditEvent } from "#server/contracts/audit.ts";

const columns: Column<AuditEvent>[] = [
  { id: "at", header: "Time", sort: (row) => row.seq, cell: (row) => <ExactTime at={row.at} /> },
  {
    id: "who",
    header: "Who",
    sort: (row) => row.actorName,
    cell: (row) => (
      <span>
        {row.actorName}
        {row.actorKind !== "user" && row.actorKind !== "system" && (
          <span className="block text-sm text-ink-2">{row.actorKind}</span>
        )}
        {row.tokenName && <span className="block text-sm text-ink-2">by token {row.tokenName}</span>}
      </span>
    ),
  },
  {
    id: "action",
    header: "Did",
    sort: (row) => row.action,
    cell: (row) => (
      <>
        <code>{row.action}</code>
        <p className="text-sm text-ink-2 sm:hidden">
          <Subject row={row} />
        </p>
      </>
    ),
  },
  {
    id: "subject",
    header: "To",
    from: "sm",
    sort: (row) => row.subjectName ?? row.subject ?? "",
    cell: (row) => <Subject row={row} />,
  },
  { id: "team", header: "Team", from: "lg", sort: (row) => row.teamName ?? "", cell: (row) => row.teamName ?? "–" },
  {
    id: "address",
    header: "Address",
    from: "xl",
    sort: (row) => row.address ?? "",
    cell: (row) => (row.address === null ? "–" : <code>{row.address}</code>),
  },
  {
    id: "detail",
    header: "Particulars",
    from: "md",
    className: "max-w-md text-sm break-words text-ink-2",
    cell: (row) => detailText(row),
  },
];

/** Who did what, with exact times; the column of addresses stands where one is known. */
export function AuditTable({ events }: { events: AuditEvent[] }) {
  const shown = events.some((row) => row.address !== null) ? columns : columns.filter(({ id }) => id !== "address");
  return (
    <DataTable
      caption="Audit"
      rows={events}
      columns={shown}
      rowKey={(row) => String(row.seq)}
      initial={{ id: "at", down: true }}
    />
  );
}

/** What it was done to, by name where it has one. */
function Subject({ row: { subject, subjectName } }: { row: AuditEvent }) {
  const title = subject ?? undefined;
  if (subjectName) return <span title={title}>{subjectName}</span>;
  return <code title={title}>{subject ? shortId(subject) : "–"}</code>;
}

function shortId(id: string): string {
  const [prefix, rest = ""] = id.split("-", 2);
  return rest.length > 8 ? `${prefix}-…${rest.slice(-6)}` : id;
}

function detailText(row: AuditEvent): string {
  return Object.entries(row.detail)
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([key, value]) => `${words(key)} ${valueText(key, value)}`)
    .join(", ");
}

/** `guaranteedMilli` → `guaranteed`, `parkedBytes` → `parked`. */
function words(key: string): string {
  return key
    .replace(/(Milli|Bytes)$/, "")
    .replace(/^milli$/, "amount")
    .replace(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`);
}

function valueText(key: string, value: unknown): string {
  if (typeof value === "number" && /milli$/i.test(key)) return formatAmount(value);
  if (typeof value === "number" && key.endsWith("Bytes")) return formatBytes(value);
  if (typeof value === "string") return /^[a-z]{2,5}-[a-z2-7]{26}$/.test(value) ? shortId(value) : value;
  if (typeof value === "object" && value !== null) {
    return `(${Object.entries(value)
      .filter(([, each]) => each !== null)
      .map(([inner, each]) => `${words(inner)} ${valueText(inner, each)}`)
      .join(", ")})`;
  }
  return String(value);
}
