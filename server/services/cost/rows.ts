import { authorize, type Context } from "#server/context.ts";
import {
  type CostLine,
  type CostReport,
  type CostRow,
  type CostRows,
  type CostRowsInput,
  costRowsInput,
} from "#server/contracts/cost.ts";
import { pageOf } from "#server/page-of.ts";
import { parse } from "#server/parse.ts";
import type { By } from "./compute.ts";
import { report } from "./report.ts";

/** A month's costs, lines of one team, person or workspace together, a page at a time. A lead names the own team. */
export async function rows(ctx: Context, raw: CostRowsInput = {}): Promise<CostRows> {
  const input = parse(costRowsInput, raw);
  authorize(ctx.principal, "cost.read", { teamId: input.teamId });
  return rowsOf(await report(ctx, { month: input.month, teamId: input.teamId }, input.by), input);
}

/** The same of a report that was read already. */
export function rowsOf(
  { month, currency, lines }: CostReport,
  input: { by: By; search?: string | undefined; limit: number; after?: string | undefined },
): CostRows {
  const all = together(lines, input.by);
  return { month, currency, ...pageOf(all, (row) => `${row.name} ${row.within ?? ""}`, input) };
}

const nobodys = { free: "Free", draining: "Draining", lost: "Lost: server away", leased: "" } as const;

function together(lines: readonly CostLine[], by: By): CostRow[] {
  const found = new Map<string, CostRow>();
  for (const line of lines) {
    const nobody = line.what !== "leased";
    const [id, name, within] = nobody ? [line.what, nobodys[line.what], null] : identify(line, by);
    const row = found.get(id) ?? { id, name, within, nobody, hours: 0, unpricedHours: 0, cents: null };
    found.set(id, row);
    row.hours += line.hours;
    if (line.cents === null) row.unpricedHours += line.hours;
    else row.cents = (row.cents ?? 0) + line.cents;
  }
  return [...found.values()].sort(
    (a, b) =>
      Number(a.nobody) - Number(b.nobody) ||
      (b.cents ?? 0) - (a.cents ?? 0) ||
      b.hours - a.hours ||
      (a.id < b.id ? -1 : 1),
  );
}

function identify(line: CostLine, by: By): [id: string, name: string, within: string | null] {
  if (by === "team") return [line.teamId ?? "", line.teamName ?? "", null];
  // A person of two teams costs each of them.
  if (by === "person") return [`${line.userId}/${line.teamId}`, line.userName ?? "", line.teamName];
  return [line.workspaceId ?? "", line.workspaceName ?? "", `${line.userName}, ${line.teamName}`];
}
