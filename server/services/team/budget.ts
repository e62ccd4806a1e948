import { asc, eq, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type TeamBudget, type TeamBudgetInput, teamBudgetInput } from "#server/contracts/team.ts";
import { quotas, teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { monthOf, spentAt } from "#server/scheduler/budget.ts";
import { usedBy } from "#server/scheduler/share.ts";
import { loadWorld } from "#server/services/lease/world.ts";

/** What a team has used of its GPU-hours this month, day by day, for each GPU type with a budget. */
export async function budget(ctx: Context, raw: TeamBudgetInput): Promise<TeamBudget> {
  const { id } = parse(teamBudgetInput, raw);
  authorize(ctx.principal, "team.read-budget", { teamId: id });
  const types = await typesWithBudget(ctx, id);
  const now = ctx.now();
  const { from, to } = monthOf(now.getTime());
  const days = types.length === 0 ? [] : await usedByDay(ctx, id, new Date(from), now);
  return {
    month: new Date(from).toISOString().slice(0, 7),
    endsAt: new Date(to).toISOString(),
    budgets: await Promise.all(
      types.map(async (gpuType) => {
        const world = await loadWorld(ctx.db, gpuType, now);
        const { milliHours = 0, usedMilliHours = 0 } = world.quotas.get(id)?.budget ?? {};
        const at = spentAt({ milliHours, usedMilliHours, endsAt: to }, usedBy(id, world), now.getTime());
        return {
          ...{ gpuType, milliHours, usedMilliHours },
          spentAt: at === undefined ? null : new Date(at).toISOString(),
          days: days
            .filter((day) => day.gpuType === gpuType)
            .map(({ day, milliHours: used }) => ({ day, milliHours: used })),
        };
      }),
    ),
  };
}

async function typesWithBudget(ctx: Context, teamId: string): Promise<string[]> {
  const rows = await ctx.db
    .select({ gpuType: quotas.gpuType, budget: quotas.budgetMilliHours })
    .from(teams)
    .leftJoin(quotas, eq(quotas.teamId, teams.id))
    .where(eq(teams.id, teamId))
    .orderBy(asc(quotas.gpuType));
  if (rows.length === 0) throw new SluiceError("not-found", "There is no such team.");
  return rows.flatMap(({ gpuType, budget }) => (gpuType === null || budget === null ? [] : [gpuType]));
}

type DayRow = { day: string; gpuType: string; milliHours: number };

/** Every day since `from` for every type that the team has a quota for; a stretch over midnight counts in both. */
async function usedByDay({ db }: Context, teamId: string, from: Date, now: Date): Promise<DayRow[]> {
  const until = now.toISOString();
  return await db.execute<DayRow>(sql`
    select to_char(d.day at time zone 'UTC', 'YYYY-MM-DD') as day, q.gpu_type as "gpuType",
      coalesce(floor(sum(i.milli * extract(epoch from
        least(coalesce(i.ended_at, ${until}::timestamptz), d.day + interval '1 day', ${until}::timestamptz)
        - greatest(i.started_at, d.day))) / 3600), 0)::float8 as "milliHours"
    from generate_series(${from.toISOString()}::timestamptz, ${until}::timestamptz, interval '1 day') d (day)
    cross join quotas q
    left join lease_intervals i on i.team_id = q.team_id and i.gpu_type = q.gpu_type
      and i.started_at < least(d.day + interval '1 day', ${until}::timestamptz)
      and coalesce(i.ended_at, ${until}::timestamptz) > d.day
    where q.team_id = ${teamId}
    group by d.day, q.gpu_type
    order by d.day`);
}
