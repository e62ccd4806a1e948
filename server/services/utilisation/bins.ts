import { sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { Utilisation } from "#server/contracts/utilisation.ts";
import { account } from "./account.ts";
import { effectiveOf, sumKnown } from "./effective.ts";
import { type Filter, HOUR_S, isNarrow, type Span, strandedIn } from "./ledger.ts";
import { observedSince } from "./observed-since.ts";

type Bin = Utilisation["bins"][number];
type Row = {
  bin: number;
  state: "open" | "draining" | "lost";
  wall: number;
  used: number;
  effective: number;
  known: number;
  estimated: number;
  held: number;
  borrowed: number;
  stranded: number;
};

/** Widths of a bin that people can read, seconds. */
const WIDTHS = [60, 300, 900, 3600, 2 * 3600, 6 * 3600, 86_400, 7 * 86_400, 28 * 86_400];
const MOST_BINS = 100;
/** Hours are rolled up; what is shorter is split from the ledger, step by step, so there are few: up to three hours. */
const MOST_STEPS = 12;

/**
 * GPU time by state, in equal bins on round instants. The first and the last bin may be shorter. No bin begins before
 * the first GPU joined, so that averages count observed time only.
 */
export async function readBins(ctx: Context, span: Span, filter: Filter): Promise<Bin[]> {
  const seconds = (span.to.getTime() - span.from.getTime()) / 1000;
  const width = WIDTHS.find((each) => seconds / each <= (each < HOUR_S ? MOST_STEPS : MOST_BINS)) ?? 364 * 86_400;
  const [{ held, pool }, since] = await Promise.all([
    account(ctx, span, filter, width, "team"),
    observedSince(ctx.db, filter.gpuType),
  ]);
  const bin = sql`floor(date_part('epoch', at) / ${sql.raw(String(width))})`;
  const rows = await ctx.db.execute<Row>(sql`
    select bin, state, sum(wall) / 3.6e9 as wall, sum(used) / 3.6e12 as used, sum(effective) / 3.6e12 as effective,
      sum(known) / 3.6e12 as known, sum(estimated) / 3.6e12 as estimated, sum(held) / 3.6e12 as held,
      sum(borrowed) / 3.6e12 as borrowed, sum(stranded) / 3.6e12 as stranded
    from (
      select ${bin} as bin, state, sum(wall::float8) as wall, 0::float8 as used, 0::float8 as effective,
        0::float8 as known, 0::float8 as estimated, 0::float8 as held, 0::float8 as borrowed, 0::float8 as stranded
      from ${pool} p group by 1, 2
      union all
      select ${bin}, state, 0, sum(used::float8), sum(effective::float8), sum(known::float8), sum(estimated::float8),
        sum(held::float8), sum(borrowed::float8), 0
      from ${held} h group by 1, 2
      union all
      select ${bin}, 'open', 0, 0, 0, 0, 0, 0, 0, sum(stranded)
      from (${strandedIn(span, filter, Math.min(width, HOUR_S))}) s group by 1
    ) parts group by 1, 2 order by 1`);
  const whole = filter.teamId === undefined && !isNarrow(filter);
  return [...Map.groupBy(rows, (row) => row.bin)].map(([number, parts]) => {
    const start = Math.max(span.from.getTime(), number * width * 1000, since?.getTime() ?? 0);
    const end = Math.min(span.to.getTime(), (number + 1) * width * 1000);
    return { from: new Date(start).toISOString(), to: new Date(end).toISOString(), ...partsOf(parts, whole) };
  });
}

/** One bin of its rows by the devices' state. */
function partsOf(rows: readonly Row[], whole: boolean): Omit<Bin, "from" | "to"> {
  const bin = { used: 0, heldIdle: 0, free: 0, draining: 0, lost: 0, borrowed: 0, stranded: 0 };
  for (const row of rows) {
    bin.used += row.used;
    bin.heldIdle += Math.max(0, row.held - row.used);
    bin.borrowed += row.borrowed;
    // What is held counts as held also while its device drains or is away: somebody has it.
    if (!whole) continue;
    const rest = Math.max(0, row.wall - row.held);
    bin[row.state === "open" ? "free" : row.state] += rest;
    bin.stranded += Math.min(rest, row.stranded);
  }
  return { ...bin, ...effectiveOf(bin.used, sumKnown(rows)) };
}
