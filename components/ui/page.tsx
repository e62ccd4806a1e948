import type { ReactNode } from "react";
import { cx } from "#components/format.ts";

/** The one h1 of a page, with what can be done on it. */
export function PageHeader({
  title,
  detail,
  actions,
  above,
}: {
  title: ReactNode;
  detail?: ReactNode;
  actions?: ReactNode;
  above?: ReactNode;
}) {
  return (
    // The title stands at the same height with and without a detail below it, and level with the buttons.
    <header className="mb-5 flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
      <div className="min-w-0">
        {above && <div className="mb-0.5 text-sm text-ink-2">{above}</div>}
        <h1 className="text-xl leading-8 font-semibold tracking-tight break-words">{title}</h1>
        {detail && <div className="mt-0.5 text-ink-2">{detail}</div>}
      </div>
      {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
    </header>
  );
}

/** A part of a page under its own heading. */
export function Section({
  title,
  detail,
  actions,
  children,
  className,
}: {
  title: string;
  detail?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  className?: string;
}) {
  return (
    <section aria-label={title} className={cx("mb-8", className)}>
      <div className="mb-2 flex flex-wrap items-end justify-between gap-x-4 gap-y-2">
        <div>
          <h2 className="text-lg font-semibold">{title}</h2>
          {detail && <div className="text-sm text-ink-2">{detail}</div>}
        </div>
        {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </div>
      {children}
    </section>
  );
}

/** A surface that stands apart from the ground. */
export function Card({ children, className }: { children: ReactNode; className?: string }) {
  return <div className={cx("rounded-lg border border-line bg-surface", className)}>{children}</div>;
}

/** One figure with its unit and what it is measured against. */
export function Figure({
  label,
  value,
  unit,
  detail,
}: {
  label: string;
  value: ReactNode;
  unit?: string;
  detail?: ReactNode;
}) {
  return (
    <div className="min-w-0 px-4 py-3">
      <dt className="text-sm text-ink-2">{label}</dt>
      <dd className="figures mt-0.5 text-2xl font-medium tracking-tight">
        {value}
        {unit && <span className="ml-1 text-base font-normal text-ink-2">{unit}</span>}
      </dd>
      {detail && <dd className="figures text-sm text-ink-2">{detail}</dd>}
    </div>
  );
}

/** Figures side by side in one frame: four, or six. */
export function Figures({ children, count = 4 }: { children: ReactNode; count?: 4 | 6 }) {
  return (
    <dl
      className={cx(
        "mb-6 grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-line *:bg-surface",
        count === 6 ? "lg:grid-cols-3 2xl:grid-cols-6" : "lg:grid-cols-4",
      )}
    >
      {children}
    </dl>
  );
}

/** Names and values, one under the other. */
export function Facts({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <dl className="grid grid-cols-[max-content_minmax(0,1fr)] gap-x-6 gap-y-1.5">
      {rows.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-ink-2">{name}</dt>
          <dd className="min-w-0 break-words">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
