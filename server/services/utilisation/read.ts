import { asc, eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import {
  type TimeParts,
  type Utilisation,
  type UtilisationInput,
  type UtilisationRow,
  utilisationInput,
} from "#server/contracts/utilisation.ts";
import { gpus, quotas } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { pageOf } from "#server/page-of.ts";
import { parse } from "#server/parse.ts";
import { readBins } from "./bins.ts";
import { effectiveOf, sumKnown } from "./effective.ts";
import { fairnessOf } from "./fairness.ts";
import { type Filter, isNarrow, type Span } from "./ledger.ts";
import { lentBy } from "./lent.ts";
import { waitsIn } from "./quantiles.ts";
import { type HeldTime, readHeldTimes, rowsOf } from "./rows.ts";
import { readWaits, readWaitsByTeam } from "./waits.ts";
import { whose } from "./whose.ts";

const DAY_MS = 24 * 3600_000;
/** So many may be asked for at once. */
export const LONGEST_DAYS = 731;

/** What became of the pool's time, over any span, and who had it. Admins ask for all of it, a lead for the own team. */
export async function read(ctx: Context, raw: UtilisationInput = {}): Promise<Utilisation> {
  const input = parse(utilisationInput, raw);
  authorize(ctx.principal, "utilisation.read", { teamId: input.teamId });
  const span = spanOf(ctx, input);
  const { gpuType, teamId, userId, workspaceId } = input;
  const filter: Filter = { gpuType, teamId, userId, workspaceId };
  const [bins, times, byTeam, types, names] = await Promise.all([
    readBins(ctx, span, filter),
    readHeldTimes(ctx, span, filter, input.by),
    readWaitsByTeam(ctx, span, filter),
    ctx.db.selectDistinct({ gpuType: gpus.gpuType }).from(gpus).orderBy(asc(gpus.gpuType)),
    whose(ctx, filter),
  ]);
  const limit = input.format === "csv" ? Number.POSITIVE_INFINITY : input.limit;
  const textOf = (row: UtilisationRow) => `${row.name} ${row.within ?? ""}`;
  const page = pageOf(rowsOf(times, input.by, input.order), textOf, { ...input, limit });
  const ids = page.rows.map((row) => row.id);
  const [waits, rows] = await Promise.all([
    readWaits(ctx, span, filter, { by: input.by, ids }, byTeam),
    input.by === "team" && !isNarrow(filter) ? withLent(ctx, span, filter, page.rows, times) : page.rows,
  ]);
  const total = sumParts(bins);
  const sumOf = (key: "borrowed" | "promised" | "delivered") => times.reduce((sum, time) => sum + time[key], 0);
  return {
    from: span.from.toISOString(),
    to: span.to.toISOString(),
    gpuTypes: types.map((row) => row.gpuType),
    ...names,
    total: { ...total, ...effectiveOf(total.used, sumKnown(times)) },
    ...waitsIn(byTeam.map((each) => each.waits)),
    bins,
    rows: rows.map((row) => ({ ...row, ...waits.get(row.id) })),
    rowCount: page.total,
    next: page.next,
    stranded: bins.reduce((sum, bin) => sum + bin.stranded, 0),
    ...{ borrowed: sumOf("borrowed"), promised: sumOf("promised"), delivered: sumOf("delivered") },
    fairness: fairnessOf(times),
  };
}

function spanOf(ctx: Context, input: { from?: string; to?: string }): Span {
  const now = ctx.now().getTime();
  const to = Math.min(now, input.to === undefined ? now : Date.parse(input.to));
  const from = input.from === undefined ? to - 7 * DAY_MS : Date.parse(input.from);
  if (from >= to) throw new SluiceError("invalid", "from: The time begins before it ends, and before now.");
  if (to - from > LONGEST_DAYS * DAY_MS) throw new SluiceError("invalid", "from: Ask for two years at most.");
  return { from: new Date(from), to: new Date(to) };
}

function sumParts(bins: readonly TimeParts[]): TimeParts {
  const total: TimeParts = { used: 0, heldIdle: 0, free: 0, draining: 0, lost: 0 };
  for (const bin of bins) for (const key of Object.keys(total) as (keyof TimeParts)[]) total[key] += bin[key];
  return total;
}

/** Lending is between teams, so all of them are looked at, whichever are shown. */
async function withLent(
  ctx: Context,
  span: Span,
  filter: Filter,
  rows: UtilisationRow[],
  times: HeldTime[],
): Promise<UtilisationRow[]> {
  const { gpuType, teamId } = filter;
  const [all, guarantees] = await Promise.all([
    teamId === undefined ? times : readHeldTimes(ctx, span, { gpuType }, "team"),
    ctx.db
      .select()
      .from(quotas)
      .where(gpuType === undefined ? undefined : eq(quotas.gpuType, gpuType)),
  ]);
  const hours = (span.to.getTime() - span.from.getTime()) / 3600_000;
  const lent = lentBy(
    guarantees.map((quota) => {
      const own = all.filter((time) => time.teamId === quota.teamId && time.gpuType === quota.gpuType);
      return {
        teamId: quota.teamId,
        gpuType: quota.gpuType,
        guaranteed: (quota.guaranteedMilli / 1000) * hours,
        held: own.reduce((sum, time) => sum + time.held, 0),
        borrowed: own.reduce((sum, time) => sum + time.borrowed, 0),
      };
    }),
  );
  return rows.map((row) => ({ ...row, lent: lent.get(row.id) ?? 0 }));
}
