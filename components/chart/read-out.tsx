"use client";

import { type CSSProperties, type KeyboardEvent, type PointerEvent, type ReactNode, useState } from "react";

type Order = "time" | "list";

/**
 * Selects one of a chart's values with arrow keys, as the attributes of a slider. Values over time begin with the
 * latest, those of a list with the first, and Down leads to the next one. A screen reader reads the selected value.
 */
export function useReadOut(label: string, values: readonly string[], order: Order = "time") {
  const [selected, setAt] = useState<number>();
  const last = values.length - 1;
  // Live values may become fewer.
  const at = selected === undefined || selected > last ? undefined : selected;
  const first = order === "time" ? last : 0;
  const onKeyDown = (event: KeyboardEvent) => {
    const next = stepped(event.key, order, at, last);
    if (next === undefined) return;
    event.preventDefault();
    setAt(next);
  };
  const slider = {
    ...{ role: "slider", tabIndex: 0, "aria-label": `Values: ${label}` },
    "aria-orientation": order === "time" ? "horizontal" : "vertical",
    ...{ "aria-valuemin": 1, "aria-valuemax": values.length, "aria-valuenow": (at ?? first) + 1 },
    "aria-valuetext": values[at ?? first],
    onKeyDown,
    onBlur: () => setAt(undefined),
  } as const;
  return { at, setAt, slider };
}

/** The value that is read out, at the place `style`. */
export function Bubble({ style, children }: { style: CSSProperties; children: ReactNode }) {
  return (
    <span
      aria-hidden="true"
      className="figures pointer-events-none absolute z-10 mb-1 w-max max-w-60 rounded-md border border-line bg-raised px-2 py-1 text-xs text-ink shadow-md"
      style={style}
    >
      {children}
    </span>
  );
}

/**
 * Reads out the parts of a drawing: the part below the pointer, or the part selected by arrow keys. In `children`, the
 * attribute `data-at` of a part is the index of its value. Keys follow the order of `values`, as in a list.
 */
export function ReadOut({
  label,
  values,
  children,
}: {
  label: string;
  values: readonly string[];
  children: ReactNode;
}) {
  const [frame, setFrame] = useState<HTMLDivElement | null>(null);
  const { at, setAt, slider } = useReadOut(label, values, "list");
  const follow = ({ target }: PointerEvent) => {
    const part = target instanceof Element ? target.closest("[data-at]") : null;
    setAt(part === null ? undefined : Number(part.getAttribute("data-at")));
  };
  const value = at === undefined ? undefined : values[at];
  return (
    <div
      ref={setFrame}
      className="relative"
      onPointerMove={follow}
      onPointerDown={follow}
      onPointerLeave={() => setAt(undefined)}
    >
      {children}
      {values.length > 0 && (
        <div {...slider} className="pointer-events-none absolute inset-0 rounded-sm">
          {value !== undefined && <Bubble style={above(frame, at)}>{value}</Bubble>}
        </div>
      )}
    </div>
  );
}

/** The place above a part of a drawing, on the side of the middle that has more space. */
function above(frame: Element | null, at: number | undefined): CSSProperties {
  const [whole, part] = [frame, frame?.querySelector(`[data-at="${at}"]`)].map((one) => one?.getBoundingClientRect());
  if (whole === undefined || part === undefined) return {};
  const middle = part.left + part.width / 2 - whole.left;
  const bottom = whole.bottom - part.top;
  return middle < whole.width / 2 ? { bottom, left: middle } : { bottom, right: whole.width - middle };
}

/** Where a key leads; the first arrow key shows the value that the order begins with. */
function stepped(key: string, order: Order, at: number | undefined, last: number): number | undefined {
  const step = order === "time" ? STEPS_OF_TIME[key] : STEPS_OF_LIST[key];
  if (step !== undefined)
    return at === undefined ? (order === "time" ? last : 0) : Math.max(0, Math.min(last, at + step));
  if (key === "Home") return 0;
  return key === "End" ? last : undefined;
}

const ACROSS = { ArrowLeft: -1, ArrowRight: 1 };
const STEPS_OF_TIME: Record<string, number | undefined> = { ...ACROSS, ArrowDown: -1, ArrowUp: 1 };
const STEPS_OF_LIST: Record<string, number | undefined> = { ...ACROSS, ArrowDown: 1, ArrowUp: -1 };
