"use client";

import { Check, ChevronRight, Circle, CircleDashed, X } from "lucide-react";
import { Elapsed } from "./time.tsx";

export type Step = {
  id: string;
  title: string;
  state: "waiting" | "running" | "done" | "failed";
  /** The last line, or what to do when it failed. */
  message?: string | null;
  startedAt?: string | null;
  finishedAt?: string | null;
  /** Everything it printed. */
  log?: string[];
};

const words = { waiting: "waiting", running: "running", done: "done", failed: "failed" } as const;

/** What a long operation does: each step with its state, its time and its log. */
export function Steps({ steps, label }: { steps: Step[]; label: string }) {
  return (
    <ol aria-label={label} className="divide-y divide-line rounded-lg border border-line bg-surface">
      {steps.map((step) => (
        <li key={step.id} className="grid grid-cols-[1.25rem_minmax(0,1fr)_auto] gap-x-2.5 px-3.5 py-2.5">
          <Mark state={step.state} />
          <div className="min-w-0">
            <p className={step.state === "waiting" ? "text-ink-2" : "font-medium"}>
              {step.title}
              <span className="sr-only">, {words[step.state]}</span>
            </p>
            {step.message && (
              <p
                className={
                  step.state === "failed"
                    ? "text-sm break-words text-bad"
                    : `font-mono text-xs text-ink-2 ${step.state === "done" ? "break-words" : "truncate"}`
                }
              >
                {step.message}
              </p>
            )}
            {step.log && step.log.length > 0 && (
              <details className="group mt-1" open={step.state === "failed" || undefined}>
                <summary className="inline-flex items-center gap-0.5 text-sm text-ink-2 hover:text-ink">
                  <ChevronRight aria-hidden="true" className="-ml-1 size-3.5 group-open:rotate-90" />
                  Log ({step.log.length === 1 ? "1 line" : `${step.log.length} lines`})
                </summary>
                {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
                <pre tabIndex={0} className="mt-1 max-h-72 overflow-auto rounded-md bg-sunken p-2.5 text-xs leading-5">
                  {step.log.join("\n")}
                </pre>
              </details>
            )}
          </div>
          <span className="figures text-sm text-ink-2">
            {step.startedAt && <Elapsed from={step.startedAt} to={step.finishedAt} />}
          </span>
        </li>
      ))}
    </ol>
  );
}

function Mark({ state }: { state: Step["state"] }) {
  const size = "mt-[3px] size-4";
  if (state === "done") return <Check aria-hidden="true" className={`${size} text-ok`} />;
  if (state === "failed") return <X aria-hidden="true" className={`${size} text-bad`} />;
  if (state === "running")
    return <CircleDashed aria-hidden="true" className={`${size} motion-safe:animate-spin text-accent`} />;
  return <Circle aria-hidden="true" className={`${size} text-idle`} />;
}
