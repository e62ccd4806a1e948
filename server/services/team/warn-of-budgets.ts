import { and, eq, inArray, sql } from "drizzle-orm";
import { type AuditEntry, authorize, type Context, inTransaction, record } from "#server/context.ts";
import { auditEvents, quotas } from "#server/db/schema/index.ts";
import { monthOf, spentAt, warningLevel } from "#server/scheduler/budget.ts";
import { usedBy } from "#server/scheduler/share.ts";
import { loadWorld } from "#server/services/lease/world.ts";

const ACTION = "team.budget-warning";

/**
 * Tells each team when its GPU-hours of the month have reached a warning level: once a level and month, in the audit
 * that the team's leads read. The log itself remembers what was told.
 */
export async function warnOfBudgets(ctx: Context): Promise<void> {
  authorize(ctx.principal, "gpu-server.control");
  const types = await ctx.db
    .selectDistinct({ gpuType: quotas.gpuType })
    .from(quotas)
    .where(sql`${quotas.budgetMilliHours} is not null`);
  const now = ctx.now();
  const month = new Date(monthOf(now.getTime()).from).toISOString().slice(0, 7);
  const reached: { subject: string; level: number; entry: AuditEntry }[] = [];
  for (const { gpuType } of types) {
    const world = await loadWorld(ctx.db, gpuType, now);
    for (const { teamId, budget } of world.quotas.values()) {
      const level = budget === undefined ? 0 : warningLevel(budget);
      if (budget === undefined || level === 0) continue;
      const { milliHours, usedMilliHours } = budget;
      const at = spentAt(budget, usedBy(teamId, world), now.getTime());
      const until = at === undefined ? {} : { spentAt: new Date(at).toISOString() };
      const subject = `${teamId}/${gpuType}/${month}`;
      const detail = { gpuType, month, level, milliHours, usedMilliHours, ...until };
      reached.push({ subject, level, entry: { by: ctx, input: { action: ACTION, subject, teamId, detail } } });
    }
  }
  if (reached.length === 0) return;
  await inTransaction(ctx, async (tx) => {
    const told = await toldLevels(
      tx,
      reached.map(({ subject }) => subject),
    );
    const fresh = reached.filter(({ subject, level }) => level > (told.get(subject) ?? 0));
    await record(
      tx.db,
      fresh.map(({ entry }) => entry),
      [],
    );
  });
}

/** The highest level that was told of each. */
async function toldLevels({ db }: Pick<Context, "db">, subjects: string[]): Promise<Map<string, number>> {
  const rows = await db
    .select({ subject: auditEvents.subject, level: sql<number>`max((${auditEvents.detail}->>'level')::int)` })
    .from(auditEvents)
    .where(and(eq(auditEvents.action, ACTION), inArray(auditEvents.subject, subjects)))
    .groupBy(auditEvents.subject);
  return new Map(rows.map((row) => [row.subject ?? "", row.level]));
}
