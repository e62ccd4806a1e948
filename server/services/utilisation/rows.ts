import { sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { compareNames } from "#server/contracts/names.ts";
import type { UtilisationRow } from "#server/contracts/utilisation.ts";
import { account, DAY_S } from "./account.ts";
import { effectiveOf, sumKnown } from "./effective.ts";
import type { Filter, Span } from "./ledger.ts";
import { noWaits } from "./quantiles.ts";

export type By = "team" | "person" | "type" | "workspace";
export type Order = "held" | "idle";

/** What somebody held, GPU-hours: the type is told where the rows are of teams or types, else person and workspace. */
export type HeldTime = {
  teamId: string;
  userId: string | null;
  workspaceId: string | null;
  gpuType: string | null;
  teamName: string;
  userName: string | null;
  workspaceName: string | null;
  used: number;
  /** Of it what multiprocessors worked, as far as that is `known`; what of it was `estimated`. */
  effective: number;
  known: number;
  estimated: number;
  held: number;
  borrowed: number;
  promised: number;
  delivered: number;
};

/**
 * Time held and used, and compute promised and delivered, as finely as the rows need it: everything else sums these. Of
 * persons and workspaces types are told only where they are asked for (`byType`), as that is more to read.
 */
export async function readHeldTimes(
  ctx: Context,
  span: Span,
  filter: Filter,
  by: By,
  { byType = false } = {},
): Promise<HeldTime[]> {
  const fine = by === "person" || by === "workspace";
  const alone = fine && !byType;
  const { held } = await account(ctx, span, filter, DAY_S, fine ? (alone ? "person-alone" : "person") : "team");
  const gpuType = alone ? sql`null::text` : sql`gpu_type`;
  const userId = fine ? sql`user_id` : sql`null::text`;
  const workspaceId = by === "workspace" ? sql`workspace_id` : sql`null::text`;
  const rows = await ctx.db.execute<HeldTime>(sql`
    with x as (
      -- Whole numbers are added up as numeric, which takes several times as long and is divided right away.
      select team_id, ${userId} as user_id, ${workspaceId} as workspace_id, ${gpuType} as gpu_type,
        sum(used::float8) as used, sum(effective::float8) as effective, sum(known::float8) as known,
        sum(estimated::float8) as estimated, sum(held::float8) as held, sum(borrowed::float8) as borrowed,
        sum(promised::float8) as promised, sum(delivered::float8) as delivered
      from ${held} h group by 1, 2, 3, 4
    )
    select x.team_id as "teamId", x.user_id as "userId", x.workspace_id as "workspaceId", x.gpu_type as "gpuType",
      coalesce(t.name, x.team_id) as "teamName", coalesce(u.name, x.user_id) as "userName",
      coalesce(w.name, x.workspace_id) as "workspaceName", x.used / 3.6e12 as used, x.effective / 3.6e12 as effective,
      x.known / 3.6e12 as known, x.estimated / 3.6e12 as estimated, x.held / 3.6e12 as held,
      x.borrowed / 3.6e12 as borrowed, x.promised / 3.6e9 as promised, x.delivered / 3.6e9 as delivered
    from x
    left join teams t on t.id = x.team_id
    left join users u on u.id = x.user_id
    left join workspaces w on w.id = x.workspace_id`);
  return [...rows];
}

const keys: Record<By, { id: (time: HeldTime) => string; name: (time: HeldTime) => string }> = {
  team: { id: (time) => time.teamId, name: (time) => time.teamName },
  person: { id: (time) => time.userId ?? "", name: (time) => time.userName ?? "" },
  type: { id: (time) => time.gpuType ?? "", name: (time) => time.gpuType ?? "" },
  workspace: { id: (time) => time.workspaceId ?? "", name: (time) => time.workspaceName ?? "" },
};

/** The table: times with the same team, person, type or workspace together, most held (or most held idle) first. */
export function rowsOf(times: readonly HeldTime[], by: By, order: Order = "held"): UtilisationRow[] {
  const { id: idOf, name: nameOf } = keys[by];
  const belongs = by === "person" || by === "workspace";
  const rows = [...Map.groupBy(times, idOf)].map(([id, own]): UtilisationRow => {
    const sumOf = (key: "used" | "borrowed" | "promised" | "delivered") =>
      own.reduce((sum, time) => sum + time[key], 0);
    const teams = new Set(own.map((time) => time.teamName));
    const used = sumOf("used");
    return {
      ...{ id, name: own[0] === undefined ? id : nameOf(own[0]) },
      within: belongs ? [...teams].sort().join(", ") : null,
      ...{ used, heldIdle: own.reduce((sum, time) => sum + Math.max(0, time.held - time.used), 0) },
      ...effectiveOf(used, sumKnown(own)),
      ...{ borrowed: sumOf("borrowed"), lent: null, ...noWaits },
      ...{ promised: sumOf("promised"), delivered: sumOf("delivered") },
    };
  });
  const weight = (row: UtilisationRow) => row.heldIdle + (order === "held" ? row.used : 0);
  return rows.sort((a, b) => weight(b) - weight(a) || compareNames(a.name, b.name));
}
