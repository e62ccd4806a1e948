/** A page of rows that were put together in memory. */

export type PageInput = { search?: string | undefined; limit: number; after?: string | undefined };
export type Page<Row> = { rows: Row[]; total: number; next: string | null };

/** Rows in their order whose text has every word, behind the row `after` (from the start when it is gone). */
export function pageOf<Row extends { id: string }>(
  all: readonly Row[],
  textOf: (row: Row) => string,
  { search = "", limit, after }: PageInput,
): Page<Row> {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = all.filter((row) => words.every((word) => textOf(row).toLowerCase().includes(word)));
  const begin = after === undefined ? 0 : matching.findIndex((row) => row.id === after) + 1;
  const rows = matching.slice(begin, begin + limit);
  const more = begin + limit < matching.length;
  return { rows, total: matching.length, next: more ? (rows.at(-1)?.id ?? null) : null };
}
