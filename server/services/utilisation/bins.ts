import { sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { Utilisation } from "#server/contracts/utilisation.ts";
import { type Filter, heldTables, type Span } from "./held.ts";

type Bin = Utilisation["bins"][number];
type Row = {
  bin: number;
  state: "open" | "draining" | "lost";
  wall: number;
  used: number;
  held: number;
  borrowed: number;
};

/** Widths of a bin that people can read, seconds. */
const WIDTHS = [60, 300, 900, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, 86_400, 7 * 86_400, 28 * 86_400];
const MOST_BINS = 100;

/** What became of the time, in equal stretches on round instants (the first and the last may be shorter). */
export async function readBins(ctx: Context, span: Span, filter: Filter): Promise<Bin[]> {
  const seconds = (span.to.getTime() - span.from.getTime()) / 1000;
  const width = WIDTHS.find((each) => seconds / each <= MOST_BINS) ?? 364 * 86_400;
  const binOf = (at: ReturnType<typeof sql>) => sql`floor(extract(epoch from ${at}) / ${width}::int)::bigint`;
  // A stretch that ends where a bin begins is not in that bin.
  const inBins = sql`generate_series(${binOf(sql`s`)}, ${binOf(sql`e - interval '1 microsecond'`)}) as bin`;
  const overlap = sql`extract(epoch from least(e, to_timestamp((bin + 1) * ${width}::int))
    - greatest(s, to_timestamp(bin * ${width}::int)))::float8`;
  const rows = await ctx.db.execute<Row>(sql`
    with ${heldTables(span, filter)}
    select bin::float8 as bin, state, sum(wall)::float8 as wall, sum(used)::float8 as used, sum(held)::float8 as held,
      sum(borrowed)::float8 as borrowed
    from (
      select bin, state, sum(${overlap}) / 3600 as wall, 0 as used, 0 as held, 0 as borrowed
      from states cross join lateral ${inBins} where e > s group by 1, 2
      union all
      select bin, state, 0, sum(milli * used * ${overlap}) / 3600000, sum(milli * ${overlap}) / 3600000,
        sum(milli * borrowed * ${overlap}) / 3600000
      from held cross join lateral ${inBins} where e > s group by 1, 2
    ) parts group by 1, 2 order by 1`);
  const whole = filter.teamId === undefined && filter.userId === undefined;
  const bins = new Map<number, Bin>();
  for (const row of rows) {
    const start = Math.max(span.from.getTime(), row.bin * width * 1000);
    const end = Math.min(span.to.getTime(), (row.bin + 1) * width * 1000);
    const bin = bins.get(row.bin) ?? {
      ...{ from: new Date(start).toISOString(), to: new Date(end).toISOString() },
      ...{ used: 0, heldIdle: 0, free: 0, draining: 0, lost: 0, borrowed: 0 },
    };
    bins.set(row.bin, bin);
    bin.used += row.used;
    bin.heldIdle += Math.max(0, row.held - row.used);
    bin.borrowed += row.borrowed;
    // What is held counts as held also while its device drains or is away: somebody has it.
    if (whole) bin[row.state === "open" ? "free" : row.state] += Math.max(0, row.wall - row.held);
  }
  return [...bins.values()];
}
