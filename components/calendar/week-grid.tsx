import { firstIndexes } from "#components/chart/first-indexes.ts";
import { ReadOut } from "#components/chart/read-out.tsx";
import { cx } from "#components/format.ts";
import { type Block, clock, DAY, type Look, lanesOf, type WeekDay } from "./week.ts";

const HOURS = [0, 6, 12, 18, 24];
const PERCENT = 100 / DAY;
/** In a narrower block stands its `short`. */
const WIDE = 5 * 60;
/** Height of a lane, in rem. */
const LANE = 1.25;

const looks: Record<Look, string> = {
  more: "bg-accent text-on-accent",
  less: "border border-line-strong bg-surface text-ink stripes",
  same: "bg-accent-soft text-ink",
};

/**
 * Seven days, one row each, with blocks at their hours. Blocks that overlap are below each other. Pointer and arrow
 * keys read out one block; a list or table beside the grid has the same facts.
 */
export function WeekGrid({ label, days }: { label: string; days: readonly WeekDay[] }) {
  const values = days.flatMap(({ name, blocks }) => blocks.map((block) => blockText(name, block)));
  const firsts = firstIndexes(days.map(({ blocks }) => blocks.length));
  return (
    <ReadOut {...{ label, values }}>
      <div
        aria-hidden="true"
        className="figures grid grid-cols-[max-content_minmax(0,1fr)] gap-x-2 gap-y-0.5 text-xs text-ink-2"
      >
        {days.map(({ name, blocks }, day) => {
          const lanes = lanesOf(blocks);
          return (
            <div key={name} className="contents">
              <span className="self-center">{name}</span>
              <div
                className="relative overflow-hidden rounded-sm bg-sunken"
                style={{ height: `${LANE * Math.max(1, ...lanes.map((lane) => lane + 1))}rem` }}
              >
                {[6, 12, 18].map((hour) => (
                  <span
                    key={hour}
                    className="absolute inset-y-0 w-px bg-line"
                    style={{ left: `${hour * 60 * PERCENT}%` }}
                  />
                ))}
                {blocks.map(({ key, from, to, text, short, look }, at) => (
                  <span
                    key={key}
                    data-at={(firsts[day] ?? 0) + at}
                    className={cx(
                      "absolute overflow-hidden rounded-sm leading-5 whitespace-nowrap",
                      to - from >= WIDE ? "px-1" : "text-center",
                      looks[look],
                    )}
                    style={{
                      left: `${from * PERCENT}%`,
                      width: `${(to - from) * PERCENT}%`,
                      top: `${LANE * (lanes[at] ?? 0)}rem`,
                      height: `${LANE}rem`,
                    }}
                  >
                    {to - from >= WIDE ? text : short}
                  </span>
                ))}
              </div>
            </div>
          );
        })}
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
    </ReadOut>
  );
}

/** `Mon 08:00 to 24:00: 0.5 guaranteed, limit 1.0`. */
const blockText = (day: string, { from, to, text }: Block): string =>
  `${day} ${clock(from)} to ${to === DAY ? "24:00" : clock(to)}: ${text}`;
