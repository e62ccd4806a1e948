import { and, eq, inArray, sql } from "drizzle-orm";
import { type AuditEntry, authorize, type Context, inTransaction, record } from "#server/context.ts";
import { auditEvents, memberships, quotas } from "#server/db/schema/index.ts";
import { monthOf, spentAt, warningLevel } from "#server/scheduler/budget.ts";
import { usedBy } from "#server/scheduler/share.ts";
import { loadWorld } from "#server/services/lease/world.ts";
import { type BudgetLevel, budgetReached } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";

const ACTION = "team.budget-warning";

/**
 * Tells each team when its GPU-hours of the month have reached a warning level, once a level and month: in the audit,
 * which remembers what was told, and by a notice to the team's leads, to all its people when nothing is left.
 */
export async function warnOfBudgets(ctx: Context): Promise<void> {
  authorize(ctx.principal, "gpu-server.control");
  const types = await ctx.db
    .selectDistinct({ gpuType: quotas.gpuType })
    .from(quotas)
    .where(sql`${quotas.budgetMilliHours} is not null`);
  const now = ctx.now();
  const month = new Date(monthOf(now.getTime()).from).toISOString().slice(0, 7);
  const reached: { subject: string; level: number; told: BudgetLevel; entry: AuditEntry }[] = [];
  for (const { gpuType } of types) {
    const world = await loadWorld(ctx.db, gpuType, now);
    for (const { teamId, teamName, budget } of world.quotas.values()) {
      const level = budget === undefined ? 0 : warningLevel(budget);
      if (budget === undefined || level === 0) continue;
      const { milliHours, usedMilliHours } = budget;
      const at = spentAt(budget, usedBy(teamId, world), now.getTime());
      const until = at === undefined ? {} : { spentAt: new Date(at).toISOString() };
      const subject = `${teamId}/${gpuType}/${month}`;
      const detail = { gpuType, month, level, milliHours, usedMilliHours, ...until };
      const told = {
        ...{ teamId, teamName, gpuType, month, level, milliHours, usedMilliHours },
        spentAt: at === undefined ? undefined : new Date(at),
      };
      reached.push({ subject, level, told, entry: { by: ctx, input: { action: ACTION, subject, teamId, detail } } });
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
    await tellPeople(
      tx,
      fresh.map(({ told }) => told),
    );
  });
}

async function tellPeople(tx: Context, levels: readonly BudgetLevel[]): Promise<void> {
  if (levels.length === 0) return;
  const people = await tx.db
    .select()
    .from(memberships)
    .where(
      inArray(
        memberships.teamId,
        levels.map(({ teamId }) => teamId),
      ),
    );
  const notices = levels.flatMap((level) =>
    people
      .filter(({ teamId, role }) => teamId === level.teamId && (role === "lead" || level.level >= 100))
      .map(({ userId }) => budgetReached(userId, level)),
  );
  await writeNotices(tx, notices);
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
