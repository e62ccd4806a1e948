import { cx } from "#components/format.ts";
import { DAY, DAYS, groupsOf, segmentsOf, type Window } from "./week.ts";

const HOURS = [0, 6, 12, 18, 24];
const PERCENT = 100 / DAY;

export type Look = "more" | "less" | "same";
const looks: Record<Look, string> = {
  more: "bg-accent text-on-accent",
  less: "border border-line-strong bg-surface text-ink stripes",
  same: "bg-accent-soft text-ink",
};

/** A week at a glance, Monday on top; the lines beside it say the same in words. */
export function WeekGrid<W extends Window>({
  windows,
  text,
  look,
  numbered = false,
}: {
  windows: readonly W[];
  /** What stands in a window; left out where it is too narrow. */
  text: (window: W) => string;
  look: (window: W) => Look;
  /** A narrow window has the number of its line (`groupsOf`). */
  numbered?: boolean;
}) {
  const lines = numbered ? groupsOf(windows, text) : [];
  const numberOf = (window: W) => lines.findIndex((line) => line.windows.includes(window)) + 1 || "";
  const days = segmentsOf(windows);
  return (
    <div aria-hidden="true" className="figures grid grid-cols-[2.25rem_minmax(0,1fr)] gap-y-0.5 text-xs text-ink-2">
      {DAYS.map((name, day) => (
        <div key={name} className="contents">
          <span className="self-center">{name}</span>
          <div className="relative h-5 overflow-hidden rounded-sm bg-sunken">
            {[6, 12, 18].map((hour) => (
              <span
                key={hour}
                className="absolute inset-y-0 w-px bg-line"
                style={{ left: `${hour * 60 * PERCENT}%` }}
              />
            ))}
            {days[day]?.map(({ window, from, to }) => (
              <span
                key={`${windows.indexOf(window)} ${from}`}
                title={text(window)}
                className={cx(
                  "absolute inset-y-0 overflow-hidden rounded-sm leading-5 whitespace-nowrap",
                  to - from >= 5 * 60 ? "px-1" : "text-center",
                  looks[look(window)],
                )}
                style={{ left: `${from * PERCENT}%`, width: `${(to - from) * PERCENT}%` }}
              >
                {to - from >= 5 * 60 ? text(window) : numberOf(window)}
              </span>
            ))}
          </div>
        </div>
      ))}
      <span />
      <div className="relative h-4">
        {HOURS.map((hour) => (
          <span
            key={hour}
            className={cx("absolute", hour === 24 ? "right-0" : hour > 0 && "-translate-x-1/2")}
            style={hour === 24 ? undefined : { left: `${hour * 60 * PERCENT}%` }}
          >
            {String(hour).padStart(2, "0")}
          </span>
        ))}
      </div>
    </div>
  );
}
