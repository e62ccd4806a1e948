import type { ReactNode } from "react";
import { cx } from "#components/format.ts";

/** What a state means for a person; the only use of colour on a page. */
export type Tone = "ok" | "busy" | "warn" | "bad" | "idle";

const dots: Record<Tone, string> = {
  ok: "bg-ok",
  busy: "bg-accent",
  warn: "bg-warn",
  bad: "bg-bad",
  idle: "bg-transparent border-[1.5px] border-idle",
};
const badges: Record<Tone, string> = {
  ok: "bg-ok-soft text-ok",
  busy: "bg-accent-soft text-accent",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
  idle: "bg-sunken text-ink-2",
};

/** A dot and a word: the word carries the meaning, the dot finds it. */
export function State({ tone, children, className }: { tone: Tone; children: ReactNode; className?: string }) {
  return (
    // The baseline of the row is that of the word, not of the dot.
    <span className={cx("inline-flex items-baseline gap-1.5 whitespace-nowrap", className)}>
      <span
        aria-hidden="true"
        className={cx("size-2 shrink-0 rounded-full", dots[tone], tone === "busy" && "motion-safe:animate-pulse")}
      />
      {children}
    </span>
  );
}

/** A short label on a tinted ground. */
export function Badge({ tone = "idle", children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span className={cx("inline-flex items-center rounded-sm px-1.5 text-xs leading-5 font-medium", badges[tone])}>
      {children}
    </span>
  );
}
