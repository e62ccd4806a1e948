"use client";

import { useRouter } from "next/navigation";
import { type ReactNode, useEffect, useState } from "react";
import { api } from "#components/api.ts";
import { cx, formatAmount, formatDuration, plural } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { Dialog } from "#components/ui/dialog.tsx";
import { FormError } from "#components/ui/field.tsx";
import { ExactTime } from "#components/ui/time.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { LeaseExplanation } from "#server/contracts/lease.ts";
import { formatWait } from "./likely-wait.ts";
import type { QueueRow } from "./queue-table.tsx";

/** Why a request waits: every rule, who holds what, what would be granted now, and when; and the way out. */
export default function ExplainRequest({ row, close }: { row: QueueRow; close: () => void }) {
  const router = useRouter();
  const toast = useToast();
  const [why, setWhy] = useState<LeaseExplanation>();
  const [error, setError] = useState<string>();
  const [leaving, setLeaving] = useState(false);
  const what = `${formatAmount(row.milli)} ${row.gpuType}`;
  // The page behind renders again whenever a lease changes, and gives a new row.
  useEffect(() => {
    let current = true;
    void api<LeaseExplanation>("GET", `/lease-requests/${row.requestId}/explanation`).then((answer) => {
      if (!current) return;
      if (answer.ok) setWhy(answer.data);
      else setError(answer.error.message);
    });
    return () => {
      current = false;
    };
  }, [row]);
  const leave = async () => {
    setLeaving(true);
    const answer = await api("DELETE", `/lease-requests/${row.requestId}`);
    setLeaving(false);
    router.refresh();
    if (!answer.ok) return setError(answer.error.message);
    toast(`The request for ${what} left the queue.`);
    close();
  };
  return (
    <Dialog
      wide
      open
      onOpenChange={close}
      title={`Why ${what} waits`}
      description={`${row.userName}, team ${row.teamName}: ${row.workspaceName}${row.label ? `, ${row.label}` : ""}`}
    >
      <div className="flex min-h-72 flex-col gap-5">{why && <Explained why={why} />}</div>
      <FormError>{error}</FormError>
      <div className="mt-5 flex flex-wrap items-center justify-end gap-x-4 gap-y-2">
        {row.canLeave && (
          <p className="mr-auto text-sm text-ink-2">
            Leaving gives up place {row.position} of {row.of}. The notebook is told and lives on.
          </p>
        )}
        <Button onClick={close}>Close</Button>
        {row.canLeave && (
          <Button variant="danger" pending={leaving} pendingLabel="Leaving" onClick={() => void leave()}>
            Leave the queue
          </Button>
        )}
      </div>
    </Dialog>
  );
}

const words: Record<string, string> = {
  stopped: "New leases",
  calendar: "Calendar",
  budget: "Budget",
  "team-limit": "Team limit",
  "person-limit": "Limit a person",
  guaranteed: "Guaranteed",
  "free-device": "Free device",
  order: "Order",
  "no-server": "GPU server",
  needs: "Needs",
  pinned: "Parked data",
  reclaim: "Taken back",
};

/** What to type for an amount of a type. */
const attachLine = (milli: number, gpuType: string) => `%gpu attach ${formatAmount(milli)} --type ${gpuType}`;

function Explained({ why }: { why: LeaseExplanation }) {
  if (why.state !== "queued") return <p>It does not wait any more: it is {why.state}.</p>;
  const { reason, estimate } = why;
  if (reason === null) return <p>Capacity is available. Granting your request…</p>;
  const holders = reason.holders ?? [];
  const own = { gpuType: why.gpuType, fitsNowMilli: reason.fitsNowMilli ?? 0 };
  const fits = [own, ...why.elsewhere].filter(({ fitsNowMilli }) => fitsNowMilli > 0);
  return (
    <>
      <Part title="Rules, in the order of their checks">
        <ol className="divide-y divide-line rounded-md border border-line">
          {why.rules.map(({ rule, state, message }) => (
            <li
              key={rule}
              aria-current={state === "here" ? "true" : undefined}
              className={cx(
                "grid grid-cols-[3rem_minmax(0,1fr)] gap-x-2 px-3 py-1.5 sm:grid-cols-[3rem_8rem_minmax(0,1fr)]",
                state === "here" && "bg-warn-soft",
              )}
            >
              <span
                className={cx(
                  "text-sm",
                  state === "here" ? "font-medium text-warn" : state === "ok" ? "text-ok" : "text-ink-2",
                )}
              >
                {state}
              </span>
              <span className={cx(state === "here" && "font-medium")}>{words[rule] ?? rule}</span>
              <span className="break-words max-sm:col-start-2">{message}</span>
            </li>
          ))}
        </ol>
      </Part>
      {holders.length > 0 && (
        <Part title="Who holds what">
          <ul className="figures">
            {holders.map((holder, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: holders have no id, and equal ones are alike
              <li key={index} className="grid grid-cols-[3.5rem_minmax(0,1fr)] gap-x-3">
                <span className="text-right font-medium">{holder.amount}</span>
                <span>
                  {holder.who}
                  {holder.label && `, ${holder.label}`}
                  {holder.idleSeconds !== undefined && (
                    <span className="text-ink-2"> (idle for {formatDuration(holder.idleSeconds * 1000)})</span>
                  )}
                </span>
              </li>
            ))}
          </ul>
        </Part>
      )}
      <Part title="Would fit now">
        {fits.length === 0 && <p>No amount would be granted at once.</p>}
        {fits.map(({ gpuType, fitsNowMilli }) => (
          <p key={gpuType}>
            {formatAmount(fitsNowMilli)} {gpuType} at once: <code>{attachLine(fitsNowMilli, gpuType)}</code>
          </p>
        ))}
        {reason.hint && !fits.some((one) => attachLine(one.fitsNowMilli, one.gpuType) === reason.hint) && (
          <p className="text-ink-2">
            Sooner: <code>{reason.hint}</code>
          </p>
        )}
      </Part>
      <Part title="Likely">
        {estimate === null ? (
          <p>No estimate: no end of a lease that is known leads to it.</p>
        ) : (
          <p>
            In {formatWait(estimate)}{" "}
            <span className="text-ink-2">
              ({formatDuration(estimate.lowSeconds * 1000)} to {formatDuration(estimate.highSeconds * 1000)}; basis:{" "}
              {estimate.basis})
            </span>
          </p>
        )}
        <p className="text-sm text-ink-2">
          Place {why.position} of {plural(why.of, "request")}, waits for {formatDuration(why.waitedSeconds * 1000)}. As
          of <ExactTime at={why.asOf} />.
        </p>
      </Part>
    </>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <h3 className="mb-1 font-medium">{title}</h3>
      {children}
    </section>
  );
}
