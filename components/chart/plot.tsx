"use client";

import type { PointerEvent, ReactNode } from "react";
import { type Bar, Bars } from "./bars.tsx";
import { Bubble, useReadOut } from "./read-out.tsx";

/**
 * The drawing of a chart, which reads out one bar: the bar below the pointer, or the bar selected by arrow keys.
 * `children` are drawn below the bars, in units of 1000 by 100.
 */
export function Plot({ label, bars, children }: { label: string; bars: Bar[]; children: ReactNode }) {
  const { at, setAt, slider } = useReadOut(
    label,
    bars.map(({ title }) => title),
  );
  const bar = at === undefined ? undefined : bars[at];
  const middle = bar && (bar.left + bar.width / 2) / 10;
  const follow = (event: PointerEvent<HTMLElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    setAt(nearest(bars, ((event.clientX - left) / Math.max(1, width)) * 1000));
  };
  return (
    <>
      <svg
        role="img"
        aria-label={label}
        viewBox="0 0 1000 100"
        preserveAspectRatio="none"
        className="absolute inset-0 size-full overflow-visible"
      >
        {children}
        <Bars bars={bars} />
      </svg>
      {bars.length > 0 && (
        <div
          {...slider}
          onPointerMove={follow}
          onPointerDown={follow}
          onPointerLeave={() => setAt(undefined)}
          className="absolute inset-0 touch-pan-y rounded-sm"
        >
          {bar && middle !== undefined && (
            <>
              <span aria-hidden="true" className="absolute inset-y-0 w-px bg-ink" style={{ left: `${middle}%` }} />
              <Bubble
                style={{ bottom: "100%", ...(middle < 50 ? { left: `${middle}%` } : { right: `${100 - middle}%` }) }}
              >
                {bar.title}
              </Bubble>
            </>
          )}
        </div>
      )}
    </>
  );
}

/** Index of the bar with its middle nearest to `place`, a position on the axis (0 to 1000). */
function nearest(bars: readonly Bar[], place: number): number | undefined {
  let best: number | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const [index, { left, width }] of bars.entries()) {
    const distance = Math.abs(left + width / 2 - place);
    if (distance < least) [best, least] = [index, distance];
  }
  return best;
}
