"use client";

import type { ReactNode } from "react";
import { formatAmount, formatDuration, formatGpuHours } from "#components/format.ts";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import type { WhatIfType } from "#server/contracts/what-if.ts";

type Row = WhatIfType["teams"][number];
type Outcome = Row["now"];

/** Each team with the pool of now and with the proposed one. */
export function TeamOutcomes({ gpuType, teams }: Pick<WhatIfType, "gpuType" | "teams">) {
  const pair = (
    id: string,
    header: string,
    value: (outcome: Outcome) => number | null,
    text: (value: number) => string,
    from?: Column<Row>["from"],
  ): Column<Row> => ({
    ...{ id, header, from, align: "right" },
    sort: (row) => value(row.proposed) ?? -1,
    cell: ({ now, proposed }) => <Pair now={value(now)} proposed={value(proposed)} text={text} />,
  });
  const duration = (seconds: number) => formatDuration(seconds * 1000);
  const count = (value: number) => value.toLocaleString("en");
  return (
    <DataTable
      caption={`Teams on ${gpuType}, now and proposed`}
      rows={teams}
      rowKey={(row) => row.teamId}
      columns={[
        { id: "name", header: "Team", sort: (row) => row.name, cell: (row) => row.name },
        pair("guaranteed", "Guaranteed", (one) => one.guaranteedMilli, formatAmount, "md"),
        pair("limit", "Limit", (one) => one.limitMilli, formatAmount, "lg"),
        pair("median", "p50 wait", (one) => one.waitP50, duration, "lg"),
        pair("wait95", "p95 wait", (one) => one.waitP95, duration),
        pair("wait99", "p99 wait", (one) => one.waitP99, duration, "xl"),
        pair("held", "Held, GPU-h", (one) => one.heldHours, formatGpuHours, "sm"),
        pair("granted", "Granted", (one) => one.granted, count, "xl"),
        pair("gaveUp", "Gave up", (one) => one.gaveUp, count, "lg"),
        pair("refused", "Refused", (one) => one.refused, count, "xl"),
      ]}
    />
  );
}

function Pair({
  now,
  proposed,
  text,
}: {
  now: number | null;
  proposed: number | null;
  text: (value: number) => string;
}): ReactNode {
  const [before, after] = [now, proposed].map((value) => (value === null ? "–" : text(value)));
  if (before === after) return <span className="text-ink-2">{before}</span>;
  return (
    <span className="whitespace-nowrap">
      <span className="text-ink-2">{before}</span>
      <span className="sr-only"> now, proposed </span>
      <span aria-hidden="true" className="text-ink-2">
        {" → "}
      </span>
      {after}
    </span>
  );
}
