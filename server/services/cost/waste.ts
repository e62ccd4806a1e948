import { authorize, type Context } from "#server/context.ts";
import { type CostReport, type Waste, type WasteInput, type WasteRow, wasteInput } from "#server/contracts/cost.ts";
import { pageOf } from "#server/page-of.ts";
import { parse } from "#server/parse.ts";
import { readBins } from "#server/services/utilisation/bins.ts";
import { type HeldTime, readHeldTimes } from "#server/services/utilisation/rows.ts";
import type { By } from "./compute.ts";
import { report } from "./report.ts";

/**
 * A month's GPU time that did nothing, in hours and in money: what was held idle, by whom, and of the whole pool what
 * nobody held. An hour of a type costs what all its hours cost on average. A lead names the own team.
 */
export async function waste(ctx: Context, raw: WasteInput = {}): Promise<Waste> {
  const { format, limit, ...input } = parse(wasteInput, raw);
  const { teamId, by } = input;
  authorize(ctx.principal, "cost.read", { teamId });
  const costs = await report(ctx, { month: input.month, teamId }, "team");
  const span = { from: new Date(costs.from), to: new Date(costs.to) };
  const filter = { teamId };
  const [times, bins] = await Promise.all([
    readHeldTimes(ctx, span, filter, by, { byType: true }),
    readBins(ctx, span, filter),
  ]);
  const centsAnHour = new Map(costs.types.map(({ gpuType, hours, cents }) => [gpuType, hours > 0 ? cents / hours : 0]));
  const rows = rowsOf(times, by, centsAnHour);
  const hoursOf = (what: "free" | "draining" | "lost") => bins.reduce((sum, bin) => sum + bin[what], 0);
  const nobodys = (["free", "draining", "lost"] as const).map((what) => ({
    ...{ what, hours: hoursOf(what), cents: centsOf(costs, what) },
  }));
  const idle = rows.reduce((sum, row) => sum + row.hours, 0);
  const cents = rows.reduce((sum, row) => sum + (row.cents ?? 0), 0);
  const parts: Waste["parts"] = [{ what: "idle", hours: idle, cents: costs.types.length === 0 ? null : cents }];
  if (teamId === undefined) parts.push(...nobodys);
  const held = rows.reduce((sum, row) => sum + row.held, 0);
  const page = pageOf(rows, (row) => `${row.name} ${row.within ?? ""}`, {
    ...input,
    limit: format === "csv" ? Number.POSITIVE_INFINITY : limit,
  });
  return {
    month: costs.month,
    currency: costs.currency,
    parts,
    hours: held + (teamId === undefined ? nobodys.reduce((sum, part) => sum + part.hours, 0) : 0),
    unpriced: costs.unpriced,
    ...page,
  };
}

function centsOf({ types, lines }: CostReport, what: "free" | "draining" | "lost"): number | null {
  if (types.length === 0) return null;
  return lines.filter((line) => line.what === what).reduce((sum, line) => sum + (line.cents ?? 0), 0);
}

/** Who held what did nothing, types together, most first: pure. */
export function rowsOf(times: readonly HeldTime[], by: By, centsAnHour: ReadonlyMap<string, number>): WasteRow[] {
  const rows = new Map<string, WasteRow>();
  for (const time of times) {
    const [id, name, within] = identify(time, by);
    const row = rows.get(id) ?? { id, name, within, held: 0, hours: 0, cents: null };
    rows.set(id, row);
    const idle = Math.max(0, time.held - time.used);
    const price = centsAnHour.get(time.gpuType ?? "");
    row.held += time.held;
    row.hours += idle;
    if (price !== undefined) row.cents = (row.cents ?? 0) + idle * price;
  }
  return [...rows.values()]
    .map((row) => ({ ...row, cents: row.cents === null ? null : Math.round(row.cents) }))
    .sort((a, b) => b.hours - a.hours || (a.id < b.id ? -1 : 1));
}

function identify(time: HeldTime, by: By): [id: string, name: string, within: string | null] {
  if (by === "team") return [time.teamId, time.teamName, null];
  // A person of two teams costs each of them.
  if (by === "person") return [`${time.userId}/${time.teamId}`, time.userName ?? "", time.teamName];
  return [time.workspaceId ?? "", time.workspaceName ?? "", `${time.userName}, ${time.teamName}`];
}
