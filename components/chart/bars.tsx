"use client";

/** How a series looks: strength and pattern tell it apart, not colour alone. */
export type Look = "used" | "partly" | "unknown" | "held" | "free" | "stranded" | "warn" | "bad";

const fills: Record<Look, string> = {
  used: "fill-accent",
  partly: "fill-accent/70",
  unknown: "fill-ink-2",
  held: "fill-accent/40",
  free: "fill-line",
  stranded: "fill-ink-2/50",
  warn: "fill-warn",
  bad: "fill-bad",
};

/** One stretch of time in a drawing's units, with its series from the lowest on. */
export type Bar = { title: string; left: number; width: number; parts: { look: Look; top: number; height: number }[] };

/** The bars of a chart. A component of the browser's, so that a page carries their figures beside them and no second drawing. */
export function Bars({ bars }: { bars: Bar[] }) {
  return bars.map(({ title, left, width, parts }) => (
    <g key={left}>
      <title>{title}</title>
      {parts.map(({ look, top, height }) => (
        <rect key={look} x={left} width={width} y={top} height={height} className={fills[look]} />
      ))}
    </g>
  ));
}
