import type { ReactNode } from "react";
import { formatDuration, formatGpuHours, formatMoney } from "#components/format.ts";
import type { WhatIfOutcome, WhatIfType } from "#server/contracts/what-if.ts";

type Line = { label: string; value: (outcome: WhatIfOutcome) => ReactNode };

const wait = (seconds: number | null) => (seconds === null ? "–" : formatDuration(seconds * 1000));
const count = (value: number) => value.toLocaleString("en");

/** The three pools side by side: what happened, the pool of now, the proposed one. */
export function OutcomeTable({ type, currency }: { type: WhatIfType; currency: string }) {
  const money = (cents: number | null) => (cents === null ? "no price" : formatMoney(Math.round(cents), currency));
  const lines: Line[] = [
    { label: "GPUs", value: ({ gpus }) => count(gpus) },
    { label: "p50 wait", value: ({ waitP50 }) => wait(waitP50) },
    { label: "p95 wait", value: ({ waitP95 }) => wait(waitP95) },
    { label: "p99 wait", value: ({ waitP99 }) => wait(waitP99) },
    { label: "Utilization", value: ({ utilisation }) => `${(utilisation * 100).toFixed(1)} %` },
    { label: "Fairness (1 is equal)", value: ({ fairness }) => fairness.toFixed(3) },
    { label: "Cost", value: ({ cents }) => money(cents) },
    { label: "Cost of a GPU-hour held", value: ({ centsPerHeldHour }) => money(centsPerHeldHour) },
    { label: "Held, GPU-hours", value: ({ heldHours }) => formatGpuHours(heldHours) },
    { label: "Granted", value: ({ granted }) => count(granted) },
    { label: "Gave up waiting", value: ({ gaveUp }) => count(gaveUp) },
    { label: "Refused", value: ({ refused }) => count(refused) },
    { label: "Reclaimed", value: ({ reclaimed }) => count(reclaimed) },
  ];
  const columns = [
    ["What happened", type.logged],
    ["Now", type.now],
    ["Proposed", type.proposed],
  ] as const;
  return (
    <div className="overflow-x-auto rounded-lg border border-line bg-surface">
      <table className="w-full text-left">
        <caption className="sr-only">{type.gpuType}: what happened, the pool of now, and the proposed one</caption>
        <thead className="text-sm text-ink-2">
          <tr>
            <td />
            {columns.map(([name]) => (
              <th key={name} scope="col" className="px-2 sm:px-3.5 py-2 text-right font-medium">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line border-t border-line">
          {lines.map(({ label, value }) => (
            <tr key={label}>
              <th scope="row" className="px-2 sm:px-3.5 py-1.5 font-normal text-ink-2">
                {label}
              </th>
              {columns.map(([name, outcome]) => (
                <td key={name} className="figures px-2 sm:px-3.5 py-1.5 text-right">
                  {value(outcome)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
