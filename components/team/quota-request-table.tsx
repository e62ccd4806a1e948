"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { formatAmount } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { State } from "#components/ui/state.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { QuotaRequestView } from "#server/contracts/sharing.ts";
import { EndIncrease } from "./end-increase.tsx";

type Row = QuotaRequestView & {
  who: string;
  /** Warning that the quota with this increase exceeds the pool. */
  beyondPool?: string | undefined;
};

/** Requests for more of a team; whoever decides them does it here. */
export function QuotaRequestTable({ requests, mayDecide }: { requests: Row[]; mayDecide: boolean }) {
  const router = useRouter();
  const toast = useToast();
  const [deciding, setDeciding] = useState<string>();
  const [ending, setEnding] = useState<Row>();
  const decide = async (id: string, approve: boolean) => {
    setDeciding(id);
    const result = await api("POST", `/quota-requests/${id}/decide`, { approve });
    setDeciding(undefined);
    if (result.ok) toast(`The request is ${approve ? "approved" : "refused"}.`);
    else toast(result.error.message, "bad");
    router.refresh();
  };
  const columns: Column<Row>[] = [
    { id: "who", header: "Who", sort: (row) => row.who, cell: (row) => row.who },
    {
      id: "more",
      header: "More",
      align: "right",
      sort: (row) => row.limitMilli,
      cell: (row) => (
        <>
          {formatAmount(row.limitMilli)} {row.gpuType}
          {row.beyondPool !== undefined && <p className="text-sm text-warn">{row.beyondPool}</p>}
        </>
      ),
    },
    { id: "reason", header: "What for", from: "sm", cell: (row) => row.reason },
    {
      id: "begins",
      header: "Begins",
      align: "right",
      from: "md",
      sort: (row) => row.startsAt,
      cell: (row) => <RelativeTime at={row.startsAt} />,
    },
    {
      id: "ends",
      header: "Ends",
      align: "right",
      from: "md",
      sort: (row) => row.endsAt,
      cell: (row) => <RelativeTime at={row.endsAt} />,
    },
    {
      id: "state",
      header: "State",
      sort: (row) => row.state,
      cell: (row) => (
        <State tone={row.state === "approved" ? "ok" : row.state === "asked" ? "warn" : "idle"}>{row.state}</State>
      ),
    },
    ...(mayDecide
      ? [
          {
            id: "decide",
            header: "Decide",
            quiet: true,
            align: "right" as const,
            cell: (row: Row) =>
              row.state === "approved" ? (
                <Button size="sm" onClick={() => setEnding(row)} aria-label={`End the increase of ${row.who}`}>
                  End
                </Button>
              ) : row.state === "asked" ? (
                <span className="inline-flex flex-wrap justify-end gap-2">
                  <Button
                    size="sm"
                    disabled={deciding === row.id}
                    onClick={() => void decide(row.id, true)}
                    aria-label={`Approve the request of ${row.who}`}
                  >
                    Approve
                  </Button>
                  <Button
                    size="sm"
                    disabled={deciding === row.id}
                    onClick={() => void decide(row.id, false)}
                    aria-label={`Refuse the request of ${row.who}`}
                  >
                    Refuse
                  </Button>
                </span>
              ) : null,
          },
        ]
      : []),
  ];
  return (
    <>
      <DataTable caption="Requests for more" rows={requests} columns={columns} rowKey={(row) => row.id} />
      {ending && <EndIncrease request={ending} onClose={() => setEnding(undefined)} />}
    </>
  );
}
