/** Pages of lists: each starts after the last row of the previous page. */
import type { SQL } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import type { Context } from "#server/context.ts";
import { SluiceError } from "#server/errors.ts";

/** `after` names an unknown row. An empty page would look like the end of the list. */
export class UnknownPlace extends SluiceError {
  constructor() {
    super("invalid", "after: No row of this list has this id. Begin with the first page.");
    this.name = "UnknownPlace";
  }
}

/** Rejects an empty page after an unknown row. An empty page after the last row is the end of the list. */
export async function refuseUnknownPlace(
  ctx: Context,
  page: readonly unknown[],
  { after, table, row }: { after: string | undefined; table: PgTable; row: (after: string) => SQL | undefined },
): Promise<void> {
  if (after === undefined || page.length > 0) return;
  if ((await ctx.db.$count(table, row(after))) === 0) throw new UnknownPlace();
}

export type PageInput = { search?: string | undefined; limit: number; after?: string | undefined };
export type Page<Row> = { rows: Row[]; total: number; next: string | null };

/** A page of rows in memory: rows with every search word in their text, in order, after the row `after`. */
export function pageOf<Row extends { id: string }>(
  all: readonly Row[],
  textOf: (row: Row) => string,
  { search = "", limit, after }: PageInput,
): Page<Row> {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = all.filter((row) => words.every((word) => textOf(row).toLowerCase().includes(word)));
  const begin = after === undefined ? 0 : matching.findIndex((row) => row.id === after) + 1;
  if (after !== undefined && begin === 0) throw new UnknownPlace();
  const rows = matching.slice(begin, begin + limit);
  const more = begin + limit < matching.length;
  return { rows, total: matching.length, next: more ? (rows.at(-1)?.id ?? null) : null };
}
