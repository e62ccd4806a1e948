"use client";

import { type KeyboardEvent, type PointerEvent, type ReactNode, useState } from "react";
import { type Bar, Bars } from "./bars.tsx";

/**
 * The drawing of a chart, which reads out one bar: the bar below the pointer, or the bar selected by arrow keys.
 * `children` are drawn below the bars, in units of 1000 by 100.
 */
export function Plot({ label, bars, children }: { label: string; bars: Bar[]; children: ReactNode }) {
  const [at, setAt] = useState<number>();
  const bar = at === undefined ? undefined : bars[at];
  const middle = bar && (bar.left + bar.width / 2) / 10;
  const follow = (event: PointerEvent<HTMLElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    setAt(nearest(bars, ((event.clientX - left) / Math.max(1, width)) * 1000));
  };
  const step = (event: KeyboardEvent) => {
    const next = stepped(event.key, at, bars.length);
    if (next === undefined) return;
    event.preventDefault();
    setAt(next);
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
          role="slider"
          tabIndex={0}
          aria-label={`Values: ${label}`}
          aria-valuemin={1}
          aria-valuemax={bars.length}
          aria-valuenow={(at ?? bars.length - 1) + 1}
          aria-valuetext={(bar ?? bars.at(-1))?.title}
          onPointerMove={follow}
          onPointerDown={follow}
          onPointerLeave={() => setAt(undefined)}
          onKeyDown={step}
          onBlur={() => setAt(undefined)}
          className="absolute inset-0 touch-pan-y rounded-sm"
        >
          {bar && middle !== undefined && (
            <>
              <span aria-hidden="true" className="absolute inset-y-0 w-px bg-ink" style={{ left: `${middle}%` }} />
              <span
                aria-hidden="true"
                className="figures pointer-events-none absolute bottom-full z-10 mb-1 w-max max-w-60 rounded-md border border-line bg-raised px-2 py-1 text-xs text-ink shadow-md"
                style={middle < 50 ? { left: `${middle}%` } : { right: `${100 - middle}%` }}
              >
                {bar.title}
              </span>
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

/** Where a key leads; the first key shows the last bar, which is the latest. */
function stepped(key: string, at: number | undefined, count: number): number | undefined {
  const last = count - 1;
  const from = at ?? last;
  switch (key) {
    case "ArrowLeft":
    case "ArrowDown":
      return at === undefined ? last : Math.max(0, from - 1);
    case "ArrowRight":
    case "ArrowUp":
      return at === undefined ? last : Math.min(last, from + 1);
    case "Home":
      return 0;
    case "End":
      return last;
    default:
      return undefined;
  }
}
