import { cx } from "#components/format.ts";
import { clockIn, offsetLabel } from "#server/contracts/time-zone.ts";
import type { Bar, Look } from "./bars.tsx";
import { Plot } from "./plot.tsx";
import { timeTicks, valueTicks } from "./ticks.ts";

const swatches: Record<Look, string> = {
  used: "bg-accent",
  partly: "bg-accent/70",
  unknown: "bg-ink",
  held: "bg-accent/40",
  free: "bg-line",
  stranded: "lines",
  warn: "bg-warn",
  bad: "bg-bad",
};

export type Series = { key: string; label: string; look: Look };
/** One stretch of time with the value of each series in it. */
export type Bin = { from: string; to: string; values: Record<string, number> };

/**
 * Values over time, stacked, one bar a stretch. It is drawn by the server; pointer and arrow keys read
 * out one stretch, and the table behind it has them all.
 */
export function TimeChart({
  label,
  series,
  bins,
  from,
  to,
  zone,
  format,
  mark = format,
  base,
  highest: atLeast = 0,
  limits = [],
  legend = series.length > 1 || limits.length > 0,
}: {
  label: string;
  series: Series[];
  bins: Bin[];
  from: string;
  to: string;
  /** In which the axis reads. */
  zone: string;
  /** A value with its unit. */
  format: (value: number) => string;
  /** A mark of the axis with its unit, where it reads otherwise: marks are `step` apart. */
  mark?: (value: number, step: number) => string;
  base?: 10 | 1024;
  /** The axis reaches this far at least: charts side by side have one scale. */
  highest?: number;
  /** Upper limits of the values, drawn as lines. A limit far above the values appears in the legend only. */
  limits?: { value: number; label: string }[];
  legend?: boolean;
}) {
  const [start, end] = [Date.parse(from), Date.parse(to)];
  const highest = Math.max(
    atLeast,
    ...bins.map((bin) => series.reduce((sum, { key }) => sum + (bin.values[key] ?? 0), 0)),
  );
  const near = limits.filter(({ value }) => value <= highest * 4).map(({ value }) => value);
  const ticks = valueTicks(Math.max(highest, ...near), base);
  const top = ticks.at(-1) ?? 1;
  const marks = ticks.map((tick) => ({ tick, text: mark(tick, ticks[1] ?? top) }));
  const x = (at: number) => ((at - start) / Math.max(1, end - start)) * 1000;
  const y = (value: number) => 100 - (value / top) * 100;
  return (
    <figure className="min-w-0">
      {legend && (
        <ul className="mb-2 flex flex-wrap gap-x-4 gap-y-1 text-sm text-ink-2">
          {series.map((one) => (
            <li key={one.key} className="inline-flex items-center gap-1.5">
              <span aria-hidden="true" className={cx("size-2.5 rounded-[2px]", swatches[one.look])} />
              {one.label}
            </li>
          ))}
          {limits.map(({ value, label: name }) => (
            <li key={name} className="inline-flex items-center gap-1.5">
              <span aria-hidden="true" className="w-4 border-t-2 border-dashed border-bad" />
              {name} {format(value)}
              {value > top && ", above this axis"}
            </li>
          ))}
        </ul>
      )}
      <div className="grid grid-cols-[max-content_minmax(0,1fr)] gap-x-2">
        <div aria-hidden="true" className="figures relative h-36 text-right text-xs text-ink-2">
          {/* Takes the width of the widest label, of which none is in the flow. */}
          <span className="invisible">
            {marks.map(({ text }) => text).reduce((most, text) => (text.length > most.length ? text : most), "")}
          </span>
          {marks.map(({ tick, text }) => (
            <span key={tick} className="absolute right-0 -translate-y-1/2" style={{ top: `${y(tick)}%` }}>
              {text}
            </span>
          ))}
        </div>
        <div className="relative h-36">
          <Plot label={label} bars={bins.map((bin) => barOf(bin, { series, x, y, zone, format }))}>
            {ticks.map((tick) => (
              <line
                key={tick}
                x1="0"
                x2="1000"
                y1={y(tick)}
                y2={y(tick)}
                vectorEffect="non-scaling-stroke"
                className={tick === 0 ? "stroke-line-strong" : "stroke-line"}
              />
            ))}
          </Plot>
          {limits
            .filter(({ value }) => value <= top)
            .map(({ value }) => (
              <span
                key={value}
                aria-hidden="true"
                className="pointer-events-none absolute inset-x-0 border-t-2 border-dashed border-bad"
                style={{ top: `${rounded(y(value))}%` }}
              />
            ))}
        </div>
        <div aria-hidden="true" className="figures relative col-start-2 mt-1 h-4 overflow-hidden text-xs text-ink-2">
          {timeTicks(start, end, zone, 5)
            .filter((tick) => x(tick.at) > 30 && x(tick.at) < 970)
            .map((tick) => (
              // At its instant, but for what a narrow axis would cut off it.
              <span
                key={tick.at}
                className="absolute -translate-x-1/2 whitespace-nowrap"
                style={{ left: `clamp(1.25rem, ${rounded(x(tick.at) / 10)}%, 100% - 1.25rem)` }}
              >
                {tick.label}
              </span>
            ))}
        </div>
      </div>
    </figure>
  );
}

type Drawing = {
  series: Series[];
  x: (at: number) => number;
  y: (value: number) => number;
  zone: string;
  format: (value: number) => string;
};

function barOf(bin: Bin, { series, x, y, zone, format }: Drawing): Bar {
  const [left, right] = [x(Date.parse(bin.from)), x(Date.parse(bin.to))];
  const words: string[] = [];
  const parts: Bar["parts"] = [];
  let bottom = 0;
  for (const { key, label, look } of series) {
    const value = bin.values[key] ?? 0;
    words.push(series.length > 1 ? `${label} ${format(value)}` : format(value));
    if (value <= 0) continue;
    const [low, high] = [y(bottom), y(bottom + value)];
    parts.push({ look, top: rounded(high), height: rounded(low - high) });
    bottom += value;
  }
  const title = `${minuteIn(zone, Date.parse(bin.from))}: ${words.join(", ")}`;
  return { title, left: rounded(left), width: rounded(Math.max(0.5, (right - left) * 0.94)), parts };
}

/** A page is no finer. */
const rounded = (value: number): number => Math.round(value * 100) / 100;

/** `2026-11-21 11:33 UTC+1`. */
function minuteIn(zone: string, at: number): string {
  return `${clockIn(zone, at).replace("T", " ").slice(0, 16)} ${offsetLabel(zone, at)}`;
}
