import { cx } from "#components/format.ts";
import { firstIndexes } from "./first-indexes.ts";
import { ReadOut } from "./read-out.tsx";
import { timeTicks } from "./ticks.ts";

/** `past`: elapsed time; `sure`: a certain future span; `maybe`: a possible future span. */
export type SpanLook = "past" | "sure" | "maybe";
export type TimelineRow = {
  id: string;
  name: string;
  /** Text equivalent of the drawing. */
  text: string;
  /** `title`: what the span means, read out with the name. */
  spans: { from: number; to: number; look: SpanLook; title: string }[];
};

const looks: Record<SpanLook, string> = {
  past: "bg-ink-2",
  sure: "bg-accent",
  maybe: "border border-line-strong bg-surface stripes",
};

/**
 * Time spans below each other on one axis, with a line at `now`. It is a list, so screen readers read names and texts;
 * the drawing shows proportions only. Times are milliseconds since 1970; the axis reads in `zone`.
 */
export function Timeline(props: {
  label: string;
  rows: TimelineRow[];
  from: number;
  to: number;
  now: number;
  zone: string;
}) {
  const { label, rows, from, to, now, zone } = props;
  const place = (at: number) =>
    Math.round(Math.min(100, Math.max(0, ((at - from) / Math.max(1, to - from)) * 100)) * 100) / 100;
  const values = rows.flatMap(({ name, spans }) => spans.map(({ title }) => `${name}: ${title}`));
  const firsts = firstIndexes(rows.map(({ spans }) => spans.length));
  return (
    <ReadOut {...{ label, values }}>
      <ul aria-label={label} className="flex flex-col gap-2">
        {rows.map(({ id, name, text, spans }, row) => (
          <li key={id} className="grid gap-x-3 gap-y-0.5 md:grid-cols-[14rem_minmax(0,1fr)]">
            <p className="min-w-0 leading-tight">
              <span className="block truncate" title={name}>
                {name}
              </span>
              <span className="figures block text-sm text-ink-2">{text}</span>
            </p>
            <span aria-hidden="true" className="relative h-4 self-center overflow-hidden rounded-sm bg-sunken">
              {spans.map((span, at) => (
                <span
                  key={`${span.look} ${span.from}`}
                  data-at={(firsts[row] ?? 0) + at}
                  className={cx("absolute inset-y-0 min-w-0.5 rounded-[2px]", looks[span.look])}
                  style={{ left: `${place(span.from)}%`, width: `${Math.max(0, place(span.to) - place(span.from))}%` }}
                />
              ))}
              <span className="absolute inset-y-0 w-px bg-ink" style={{ left: `${place(now)}%` }} />
            </span>
          </li>
        ))}
      </ul>
      <div aria-hidden="true" className="mt-1 grid gap-x-3 md:grid-cols-[14rem_minmax(0,1fr)]">
        <span className="max-md:hidden" />
        <span className="figures relative h-4 overflow-hidden text-xs text-ink-2">
          {timeTicks(from, to, zone, 5)
            .filter(({ at }) => place(at) > 3 && place(at) < 97)
            .map(({ at, label: tick }) => (
              <span
                key={at}
                className="absolute -translate-x-1/2 whitespace-nowrap"
                style={{ left: `clamp(1.25rem, ${place(at)}%, 100% - 1.25rem)` }}
              >
                {tick}
              </span>
            ))}
        </span>
      </div>
    </ReadOut>
  );
}
