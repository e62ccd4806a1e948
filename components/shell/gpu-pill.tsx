"use client";

import { formatAmount } from "#components/format.ts";
import { EndsIn, takenBackAt } from "#components/lease/ends-in.tsx";
import { Link } from "#components/ui/link.tsx";
import { useGlance } from "./live-glance.tsx";
import { pillState } from "./pill-state.ts";

/** Your GPU at a glance: the amount held and its limits (until it is taken back, where it is), or your place in the queue. */
export function GpuPill() {
  const state = pillState(useGlance().glance);
  return (
    <Link
      href="/gpus"
      className="figures inline-flex h-7 min-w-0 items-center gap-2 rounded-full border border-line bg-surface px-3 text-sm whitespace-nowrap hover:bg-hover"
    >
      <span className="sr-only">Your GPU: </span>
      <span
        aria-hidden="true"
        className={
          state.kind === "held"
            ? `size-2 rounded-full ${takenBackAt(state) === null ? "bg-ok" : "bg-warn"}`
            : state.kind === "queued"
              ? "size-2 rounded-full bg-warn"
              : "size-2 rounded-full border-[1.5px] border-idle"
        }
      />
      {state.kind === "none" && <span className="text-ink-2">No GPU</span>}
      {state.kind === "held" && (
        <>
          <span className="font-medium">
            {formatAmount(state.milli)} {state.gpuType}
          </span>
          <span className="text-ink-2 max-lg:sr-only">
            <EndsIn lease={state} />
            {state.more > 0 && `, ${state.more} more`}
          </span>
        </>
      )}
      {state.kind === "queued" && (
        <>
          <span className="font-medium">
            {formatAmount(state.milli)} {state.gpuType}
          </span>
          <span className="text-ink-2">{state.position === null ? "queued" : `queued, place ${state.position}`}</span>
        </>
      )}
    </Link>
  );
}
