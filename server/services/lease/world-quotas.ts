/** What teams may use of a GPU type at a time: quotas with their calendar, additions, budgets and past use. */
import { and, eq, gt, inArray, isNull, sql } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import {
  kindWindows,
  leaseIntervals,
  quotaRequests,
  quotas,
  quotaWindows,
  reservations,
  stopSwitches,
  teamPolicies,
  teams,
  teamUsage,
} from "#server/db/schema/index.ts";
import { monthOf } from "#server/scheduler/budget.ts";
import { type Addition, kindsAt, quotaAt } from "#server/scheduler/calendar.ts";
import { averageMilli, decayed } from "#server/scheduler/decay.ts";
import type { Budget, Quota, Reservation, Stop, World } from "#server/scheduler/types.ts";
import { DEFAULT_IDLE_SECONDS } from "./policy.ts";

type Db = Database | Transaction;

/** The quotas of a type in force at a time, by team. */
export async function loadQuotas(db: Db, gpuType: string, now: Date): Promise<Map<string, Quota>> {
  const [rows, windows, additions] = await Promise.all([
    db
      .select({ quota: quotas, teamName: teams.name, policy: teamPolicies, usage: teamUsage })
      .from(quotas)
      .innerJoin(teams, eq(teams.id, quotas.teamId))
      .leftJoin(teamPolicies, eq(teamPolicies.teamId, quotas.teamId))
      .leftJoin(teamUsage, and(eq(teamUsage.teamId, quotas.teamId), eq(teamUsage.gpuType, quotas.gpuType)))
      .where(eq(quotas.gpuType, gpuType)),
    db.select().from(quotaWindows).where(eq(quotaWindows.gpuType, gpuType)),
    loadAdditions(db, gpuType, now),
  ]);
  const budgeted = rows.filter(({ quota }) => quota.budgetMilliHours !== null).map(({ quota }) => quota.teamId);
  const spent = budgeted.length === 0 ? new Map<string, number>() : await spentThisMonth(db, gpuType, budgeted, now);
  const at = now.getTime();
  return new Map(
    rows.map(({ quota, teamName, policy, usage }) => {
      const { teamId } = quota;
      const ofTeam = windows.filter((window) => window.teamId === teamId);
      const inForce = quotaAt(
        quota,
        ofTeam.map(({ fromMinute, toMinute, ...rest }) => ({ from: fromMinute, to: toMinute, ...rest })),
        additions.filter((addition) => addition.teamId === teamId),
        at,
      );
      const past = usage === null ? 0 : averageMilli(decayed(usage.amount, at - usage.at.getTime()));
      return [
        teamId,
        {
          teamId,
          teamName,
          ...inForce,
          weight: quota.weight,
          priority: quota.priority,
          ...(quota.personMilli === null ? {} : { personMilli: quota.personMilli }),
          ...(quota.largestMilli === null ? {} : { largestMilli: quota.largestMilli }),
          coTenancy: policy?.coTenancy ?? "any",
          recentMilli: past,
          idleMs: (policy?.idleSeconds ?? DEFAULT_IDLE_SECONDS) * 1000,
          ...budgetOf(quota.budgetMilliHours, spent.get(teamId) ?? 0, at),
        },
      ];
    }),
  );
}

function budgetOf(milliHours: number | null, usedMilliHours: number, at: number): { budget?: Budget } {
  return milliHours === null ? {} : { budget: { milliHours, usedMilliHours, endsAt: monthOf(at).to } };
}

/** Approved requests for more that have not ended. */
export async function loadAdditions(db: Db, gpuType: string, now: Date): Promise<(Addition & { teamId: string })[]> {
  const rows = await db
    .select()
    .from(quotaRequests)
    .where(and(eq(quotaRequests.gpuType, gpuType), eq(quotaRequests.state, "approved"), gt(quotaRequests.endsAt, now)));
  return rows.map((row) => ({
    teamId: row.teamId,
    guaranteedMilli: row.guaranteedMilli,
    limitMilli: row.limitMilli,
    from: row.startsAt.getTime(),
    to: row.endsAt.getTime(),
  }));
}

/** GPU-hours of this month so far, thousandths, from the ledger. */
export async function spentThisMonth(
  db: Db,
  gpuType: string,
  teamIds: string[],
  now: Date,
): Promise<Map<string, number>> {
  const from = new Date(monthOf(now.getTime()).from);
  const { startedAt, endedAt, milli, teamId } = leaseIntervals;
  const ms = sql`extract(epoch from (coalesce(${endedAt}, ${now.toISOString()}::timestamptz) - greatest(${startedAt}, ${from.toISOString()}::timestamptz))) * 1000`;
  const rows = await db
    .select({ teamId, spent: sql<number>`floor(sum(${milli} * greatest(0, ${ms})) / 3600000)`.mapWith(Number) })
    .from(leaseIntervals)
    .where(
      and(
        inArray(teamId, teamIds),
        eq(leaseIntervals.gpuType, gpuType),
        sql`coalesce(${endedAt}, ${now.toISOString()}::timestamptz) > ${from.toISOString()}::timestamptz`,
      ),
    )
    .groupBy(teamId);
  return new Map(rows.map((row) => [row.teamId, row.spent]));
}

/** Stop switches that are on. */
export async function loadStops(db: Db): Promise<Stop[]> {
  const rows = await db.select().from(stopSwitches).where(isNull(stopSwitches.liftedAt));
  return rows.map(({ scope, subjectId, reason }) => ({
    scope,
    reason,
    ...(subjectId === null ? {} : { subjectId }),
  }));
}

/** Reservations of a type that have not ended. */
export async function loadReservations(db: Db, gpuType: string, now: Date): Promise<Reservation[]> {
  const rows = await db
    .select()
    .from(reservations)
    .where(and(eq(reservations.gpuType, gpuType), gt(reservations.endsAt, now)));
  return rows.map(({ id, teamId, milli, unitMilli, startsAt, endsAt }) => ({
    ...{ id, teamId, milli, unitMilli },
    ...{ from: startsAt.getTime(), to: endsAt.getTime() },
  }));
}

/** Which kinds of work the type takes now. */
export async function loadOpenKinds(db: Db, gpuType: string, now: Date): Promise<NonNullable<World["open"]>> {
  const rows = await db.select().from(kindWindows).where(eq(kindWindows.gpuType, gpuType));
  return kindsAt(
    rows.map(({ fromMinute, toMinute, kind }) => ({ from: fromMinute, to: toMinute, kind })),
    now.getTime(),
  );
}
