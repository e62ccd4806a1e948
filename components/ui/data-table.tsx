"use client";

import { ChevronDown, ChevronsUpDown, ChevronUp, Search } from "lucide-react";
import { type ReactNode, useMemo } from "react";
import { cx } from "#components/format.ts";
import { useHydrated } from "#components/live/hydrated.ts";
import { compareNames } from "#server/contracts/names.ts";
import { goToRow } from "./row-keys.ts";
import { useTableQuestion } from "./table-question.ts";

export type Column<Row> = {
  id: string;
  header: string;
  cell: (row: Row) => ReactNode;
  /** What the column sorts by: a name or an instant as text, `9999` for none after all; without it the header is not a button. */
  sort?: (row: Row) => string | number;
  /** Figures stand on the right. */
  align?: "right";
  /** Left out below this width. */
  from?: "sm" | "md" | "lg" | "xl" | "2xl";
  className?: string;
  /** What stands below all rows, whatever is filtered. */
  foot?: ReactNode;
  /** The header is only for a screen reader: the buttons below it say what they do. */
  quiet?: boolean;
};

const fromWidth = {
  ...{ sm: "max-sm:hidden", md: "max-md:hidden", lg: "max-lg:hidden", xl: "max-xl:hidden" },
  "2xl": "max-2xl:hidden",
} as const;

/** On a phone buttons stay in sight, in front of what the table scrolls under them. */
const PHONE_BUTTONS = "max-sm:sticky max-sm:right-0 max-sm:bg-surface";

/** So many rows stand in the server's answer, which is more than a screen; the browser has the data of all, and adds the rest. */
const AT_FIRST = 40;

/**
 * A table that sorts by its headers, filters by a word, and is gone through by the arrow keys. What it is sorted and
 * filtered by stands in the address: it is there again after a reload, and whoever gets the link sees the same.
 */
export function DataTable<Row>({
  caption,
  rows,
  columns,
  rowKey,
  filter,
  filterLabel = "Filter",
  initial,
  toolbar,
}: {
  /** Names the table for a screen reader. */
  caption: string;
  rows: Row[];
  columns: Column<Row>[];
  rowKey: (row: Row) => string;
  /** The text that a filter word is looked for in; without it there is no filter. */
  filter?: (row: Row) => string;
  filterLabel?: string;
  initial?: { id: string; down?: boolean };
  toolbar?: ReactNode;
}) {
  const hydrated = useHydrated();
  const { word, setWord, order, setOrder } = useTableQuestion(caption, initial);
  const shown = useMemo(() => {
    const wanted = word.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const kept = filter
      ? rows.filter((row) => {
          const text = filter(row).toLowerCase();
          return wanted.every((each) => text.includes(each));
        })
      : rows;
    const by = columns.find((column) => column.id === order?.id)?.sort;
    if (!by) return kept;
    const sign = order?.down ? -1 : 1;
    return [...kept].sort((a, b) => {
      const [x, y] = [by(a), by(b)];
      return sign * (typeof x === "number" && typeof y === "number" ? x - y : compareNames(String(x), String(y)));
    });
  }, [rows, columns, filter, word, order]);

  return (
    <div>
      {(filter || toolbar) && (
        <div className="mb-2 flex flex-wrap items-center gap-2">
          {filter && (
            <label className="relative block w-full sm:w-72">
              <span className="sr-only">{filterLabel}</span>
              <Search aria-hidden="true" className="pointer-events-none absolute top-2 left-2.5 size-4 text-ink-2" />
              <input
                type="search"
                value={word}
                onChange={(event) => setWord(event.target.value)}
                placeholder={filterLabel}
                className="h-8 w-full rounded-md border border-line-strong bg-surface pr-2.5 pl-8 placeholder:text-ink-2"
              />
            </label>
          )}
          {toolbar}
          <span aria-live="polite" className="figures text-sm text-ink-2">
            {word && `${shown.length} of ${rows.length}`}
          </span>
        </div>
      )}
      <section
        aria-label={`${caption}, table`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls sideways must be reachable by keyboard
        tabIndex={0}
        onKeyDown={goToRow}
        className="relative overflow-x-auto rounded-lg border border-line bg-surface"
      >
        <table className="w-full border-collapse text-left">
          <caption className="sr-only">{caption}</caption>
          <thead>
            <tr className="border-b border-line">
              {columns.map((column) => {
                const active = order?.id === column.id;
                return (
                  <th
                    key={column.id}
                    scope="col"
                    aria-sort={active ? (order.down ? "descending" : "ascending") : undefined}
                    className={cx(
                      "h-8 px-2 text-sm font-medium whitespace-nowrap text-ink-2 sm:px-3",
                      column.align === "right" && "text-right",
                      column.from && fromWidth[column.from],
                    )}
                  >
                    {column.sort ? (
                      <button
                        type="button"
                        onClick={() => setOrder({ id: column.id, down: active ? !order.down : false })}
                        className="-mx-1 inline-flex h-6 items-center gap-0.5 rounded-sm px-1 hover:bg-hover hover:text-ink"
                      >
                        {column.header}
                        <SortMark state={active ? (order.down ? "down" : "up") : "none"} />
                      </button>
                    ) : (
                      <span className={column.quiet ? "sr-only" : undefined}>{column.header}</span>
                    )}
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {(hydrated ? shown : shown.slice(0, AT_FIRST)).map((row) => (
              <tr key={rowKey(row)} className="border-b border-line last:border-b-0 hover:bg-hover">
                {columns.map((column) => (
                  <td key={column.id} className={cx(cellLook(column), column.quiet && PHONE_BUTTONS)}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            ))}
            {shown.length === 0 && (
              <tr>
                <td colSpan={columns.length} className="px-3 py-4 text-ink-2">
                  {word ? `Nothing matches “${word}”.` : "Nothing here."}
                </td>
              </tr>
            )}
          </tbody>
          {columns.some((column) => column.foot !== undefined) && (
            <tfoot>
              <tr className="border-t border-line-strong bg-sunken">
                {columns.map((column) => (
                  <td key={column.id} className={cellLook(column)}>
                    {column.foot}
                  </td>
                ))}
              </tr>
            </tfoot>
          )}
        </table>
      </section>
    </div>
  );
}

function cellLook<Row>({ align, from, className }: Column<Row>): string {
  return cx(
    "px-2 py-2 align-middle sm:px-3",
    align === "right" && "figures text-right whitespace-nowrap",
    from && fromWidth[from],
    className,
  );
}

function SortMark({ state }: { state: "up" | "down" | "none" }) {
  const Mark = state === "up" ? ChevronUp : state === "down" ? ChevronDown : ChevronsUpDown;
  return <Mark aria-hidden="true" className={cx("size-3.5", state === "none" && "opacity-50")} />;
}
