/** What teams may use of a GPU type at a time: quotas with their calendar, additions, budgets and past use. */
import { and, eq, gt } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import { quotaRequests } from "#server/db/schema/index.ts";
import { monthOf } from "#server/scheduler/budget.ts";
import { type Addition, type Calendar, quotaAt } from "#server/scheduler/calendar.ts";
import { averageMilli, decayed } from "#server/scheduler/decay.ts";
import type { Budget, Quota } from "#server/scheduler/types.ts";
import { DEFAULT_IDLE_SECONDS } from "./policy.ts";
import type { QuotaRow, WorldRows } from "./world-rows.ts";

type Db = Database | Transaction;

/** The quotas in force at a time, by team. */
export function quotasFrom(
  rows: Pick<WorldRows, "timeZone" | "quotas" | "windows" | "additions">,
  at: number,
): Map<string, Quota> {
  const additions = rows.additions.map(({ startsAt, endsAt, ...rest }) => {
    return { ...rest, from: Date.parse(startsAt), to: Date.parse(endsAt) };
  });
  return new Map(
    rows.quotas.map((quota) => {
      const { teamId, teamName, weight, priority, personMilli, largestMilli, coTenancy, idleSeconds } = quota;
      const { minRunSeconds, noticeSeconds } = quota;
      const windows = rows.windows.filter((window) => window.teamId === teamId);
      const { guaranteedMilli, limitMilli } = quota;
      const ofTeam = additions.filter((addition) => addition.teamId === teamId);
      const plain = { guaranteedMilli, limitMilli };
      const calendar: Calendar = { zone: rows.timeZone, plain, windows, additions: ofTeam };
      return [
        teamId,
        {
          ...{ teamId, teamName, ...quotaAt(calendar, at), weight, priority },
          ...(windows.length + ofTeam.length > 0 && { calendar }),
          ...(personMilli === null ? {} : { personMilli }),
          ...(largestMilli === null ? {} : { largestMilli }),
          coTenancy: coTenancy ?? "any",
          recentMilli: recentOf(quota, at),
          idleMs: (idleSeconds ?? DEFAULT_IDLE_SECONDS) * 1000,
          times: {
            ...(minRunSeconds === null ? {} : { minRunMs: minRunSeconds * 1000 }),
            ...(noticeSeconds === null ? {} : { noticeMs: noticeSeconds * 1000 }),
          },
          ...budgetOf(quota, at),
        },
      ];
    }),
  );
}

function recentOf({ usage, usageAt }: QuotaRow, at: number): number {
  return usage === null || usageAt === null ? 0 : averageMilli(decayed(usage, at - Date.parse(usageAt)));
}

function budgetOf({ budgetMilliHours, spentMilliHours }: QuotaRow, at: number): { budget?: Budget } {
  if (budgetMilliHours === null) return {};
  return { budget: { milliHours: budgetMilliHours, usedMilliHours: spentMilliHours ?? 0, endsAt: monthOf(at).to } };
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
