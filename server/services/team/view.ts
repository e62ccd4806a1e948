import { and, asc, count, eq, gt, inArray, isNull, lte, ne, type SQL, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { compareNames } from "#server/contracts/names.ts";
import type { QuotaView, TeamSummary } from "#server/contracts/team.ts";
import { leases, memberships, quotaRequests, quotas, teams, workspaces } from "#server/db/schema/index.ts";
import { loadPromises } from "#server/services/lease/world.ts";

/** Teams by name, with their quotas and what they have borrowed. */
export async function readTeams(ctx: Context, where: SQL | undefined): Promise<TeamSummary[]> {
  const rows = await ctx.db.select().from(teams).where(where);
  rows.sort((a, b) => compareNames(a.name, b.name));
  const ids = rows.map((row) => row.id);
  if (ids.length === 0) return [];
  const [members, spaces, quotaViews] = await Promise.all([
    ctx.db
      .select({ teamId: memberships.teamId, n: count() })
      .from(memberships)
      .where(inArray(memberships.teamId, ids))
      .groupBy(memberships.teamId),
    ctx.db
      .select({ teamId: workspaces.teamId, n: count() })
      .from(workspaces)
      .where(and(inArray(workspaces.teamId, ids), isNull(workspaces.podUid), ne(workspaces.desired, "removed")))
      .groupBy(workspaces.teamId),
    readQuotas(ctx, ids),
  ]);
  const countIn = (counts: { teamId: string; n: number }[], id: string) => counts.find((c) => c.teamId === id)?.n ?? 0;
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    createdAt: row.createdAt.toISOString(),
    archivedAt: row.archivedAt?.toISOString() ?? null,
    memberCount: countIn(members, row.id),
    workspaceCount: countIn(spaces, row.id),
    quotas: quotaViews.get(row.id) ?? [],
  }));
}

async function readQuotas(ctx: Context, teamIds: string[]): Promise<Map<string, QuotaView[]>> {
  const used = ctx.db
    .select({
      teamId: leases.teamId,
      gpuType: leases.gpuType,
      milli: sql<number>`sum(${leases.milli})::int`.as("milli"),
    })
    .from(leases)
    .where(and(inArray(leases.teamId, teamIds), ne(leases.state, "ended")))
    .groupBy(leases.teamId, leases.gpuType)
    .as("used");
  const rows = await ctx.db
    .select({ quota: quotas, usedMilli: used.milli })
    .from(quotas)
    .leftJoin(used, and(eq(used.teamId, quotas.teamId), eq(used.gpuType, quotas.gpuType)))
    .where(inArray(quotas.teamId, teamIds))
    .orderBy(asc(quotas.gpuType));
  const increases = await increasesNow(ctx, teamIds);
  const now = await guaranteesNow(ctx, new Set(rows.map(({ quota }) => quota.gpuType)));
  const views = new Map<string, QuotaView[]>();
  for (const { quota, usedMilli } of rows) {
    const { teamId, ...rest } = quota;
    const guaranteedNowMilli = now.get(quota.gpuType)?.get(teamId) ?? 0;
    const added = increases
      .filter((each) => each.teamId === teamId && each.gpuType === quota.gpuType)
      .map(({ guaranteedMilli, limitMilli, endsAt }) => ({
        guaranteedMilli,
        limitMilli,
        endsAt: endsAt.toISOString(),
      }));
    const view = { ...rest, guaranteedNowMilli, increases: added, usedMilli: usedMilli ?? 0 };
    views.set(teamId, [...(views.get(teamId) ?? []), view]);
  }
  return views;
}

async function increasesNow(ctx: Context, teamIds: string[]) {
  const { teamId, startsAt, endsAt, state } = quotaRequests;
  const now = ctx.now();
  return await ctx.db
    .select()
    .from(quotaRequests)
    .where(and(inArray(teamId, teamIds), eq(state, "approved"), lte(startsAt, now), gt(endsAt, now)))
    .orderBy(asc(endsAt));
}

/** By GPU type, what each team is guaranteed with the devices that are there. */
async function guaranteesNow(
  ctx: Context,
  gpuTypes: ReadonlySet<string>,
): Promise<Map<string, ReadonlyMap<string, number>>> {
  const read = async (gpuType: string) => {
    const { guarantees } = await loadPromises(ctx.db, gpuType, ctx.now());
    return [gpuType, guarantees] as const;
  };
  return new Map(await Promise.all([...gpuTypes].map(read)));
}
