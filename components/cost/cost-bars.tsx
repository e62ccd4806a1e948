import { ReadOut } from "#components/chart/read-out.tsx";
import { cx } from "#components/format.ts";

export type CostBar = {
  id: string;
  name: string;
  value: number;
  /** The amount with its unit. */
  text: string;
  note?: string;
  /** Text for the read-out after name and amount, such as a share of the total. */
  more?: string;
  isCurrent?: boolean;
};

/**
 * Amounts of money as bars below each other. It is a list, so screen readers read names and figures; the drawing shows
 * proportions only.
 */
export function CostBars({ label, bars }: { label: string; bars: CostBar[] }) {
  const most = Math.max(0, ...bars.map(({ value }) => value));
  return (
    <ReadOut
      label={label}
      values={bars.map(({ name, text, note, more }) => [`${name}: ${text}`, note, more].filter(Boolean).join(", "))}
    >
      <ul aria-label={label} className="flex flex-col gap-1.5">
        {bars.map(({ id, name, value, text, note, isCurrent }, index) => (
          <li
            key={id}
            data-at={index}
            aria-current={isCurrent ? "true" : undefined}
            className="grid grid-cols-[5.5rem_minmax(0,1fr)_auto] items-center gap-x-3 sm:grid-cols-[9rem_minmax(0,1fr)_auto]"
          >
            <span className={cx("truncate", isCurrent && "font-medium")} title={name}>
              {name}
            </span>
            <span aria-hidden="true" className="h-3 rounded-[2px] bg-sunken">
              <span
                className={cx("block h-full rounded-[2px]", isCurrent === false ? "bg-accent/40" : "bg-accent")}
                style={{ width: `${most > 0 ? Math.max(0.5, Math.round((value / most) * 1000) / 10) : 0}%` }}
              />
            </span>
            <span className="figures text-right">
              {text}
              {note && <span className="ml-1.5 text-sm text-ink-2">{note}</span>}
            </span>
          </li>
        ))}
      </ul>
    </ReadOut>
  );
}
