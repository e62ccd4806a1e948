import { inArray, isNotNull, isNull } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { TeamList, TeamSummary } from "#server/contracts/team.ts";
import { teams } from "#server/db/schema/index.ts";
import { capacityByType } from "#server/services/team/capacity.ts";
import { readTeams } from "#server/services/team/view.ts";

/** One's own teams; for an admin all of them, those that were put away, and what of the pool is guaranteed to none. */
export async function list(ctx: Context): Promise<TeamList> {
  authorize(ctx.principal, "team.list");
  if (ctx.principal.kind !== "user" || ctx.principal.isAdmin) {
    const [all, capacity, archived] = await Promise.all([
      readTeams(ctx, isNull(teams.archivedAt)),
      capacityByType(ctx),
      readArchived(ctx),
    ]);
    return { teams: all, pool: unallocated(all, capacity), archived };
  }
  const own = Object.keys(ctx.principal.teams);
  return { teams: own.length === 0 ? [] : await readTeams(ctx, inArray(teams.id, own)), pool: [], archived: [] };
}

async function readArchived(ctx: Context): Promise<TeamList["archived"]> {
  const { id, name, archivedAt } = teams;
  const rows = await ctx.db.select({ id, name, archivedAt }).from(teams).where(isNotNull(archivedAt)).orderBy(name);
  return rows.flatMap((row) => (row.archivedAt ? [{ ...row, archivedAt: row.archivedAt.toISOString() }] : []));
}

function unallocated(all: readonly TeamSummary[], capacity: ReadonlyMap<string, number>): TeamList["pool"] {
  const quotas = all.flatMap((team) => team.quotas);
  const types = [...new Set([...capacity.keys(), ...quotas.map((quota) => quota.gpuType)])].sort();
  return types.map((gpuType) => {
    const capacityMilli = capacity.get(gpuType) ?? 0;
    const ofType = quotas.filter((quota) => quota.gpuType === gpuType);
    const guaranteedMilli = ofType.reduce((sum, quota) => sum + quota.guaranteedMilli, 0);
    return { gpuType, capacityMilli, guaranteedMilli, unallocatedMilli: capacityMilli - guaranteedMilli };
  });
}
