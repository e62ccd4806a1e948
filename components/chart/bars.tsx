"use client";

import { useId } from "react";

/** How a series looks: strength and pattern tell it apart, not colour alone; accent and `ink-2` have one lightness. */
export type Look = "used" | "partly" | "unknown" | "held" | "free" | "stranded" | "warn" | "bad";

const fills: Record<Exclude<Look, "stranded">, string> = {
  used: "fill-accent",
  partly: "fill-accent/70",
  unknown: "fill-ink",
  held: "fill-accent/40",
  free: "fill-line",
  warn: "fill-warn",
  bad: "fill-bad",
};

/** One stretch of time in a drawing's units, with its series from the lowest on. */
export type Bar = { title: string; left: number; width: number; parts: { look: Look; top: number; height: number }[] };

/** The bars of a chart. A component of the browser's, so that a page carries their figures beside them and no second drawing. */
export function Bars({ bars }: { bars: Bar[] }) {
  const lines = useId();
  return (
    <>
      <defs>
        {/* Lines along the axis: however wide the drawing becomes, they stay what they are. */}
        <pattern id={lines} width="8" height="3" patternUnits="userSpaceOnUse">
          <rect width="8" height="1.2" className="fill-ink-2" />
        </pattern>
      </defs>
      {bars.map(({ title, left, width, parts }) => (
        <g key={left}>
          <title>{title}</title>
          {parts.map(({ look, top, height }) => {
            const place = { x: left, width, y: top, height };
            return look === "stranded" ? (
              <rect key={look} {...place} fill={`url(#${lines})`} />
            ) : (
              <rect key={look} {...place} className={fills[look]} />
            );
          })}
        </g>
      ))}
    </>
  );
}
