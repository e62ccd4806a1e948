import { and, eq, inArray } from "drizzle-orm";
import { type AuditEntry, type Context, inTransaction, record } from "#server/context.ts";
import type { RunningKernel } from "#server/contracts/control.ts";
import { type leases, memberships, teamPolicies, teams } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { longKernel } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";
import { theirs } from "./holder.ts";

export type Runs = { lease: typeof leases.$inferSelect; running: RunningKernel | null };

/**
 * Reports kernels that have just run for longer than their team's policy says: who shares the device
 * waits until they end. Their holder and the leads of the team are told, once for each lease and
 * kernel, and the audit keeps each such run. `lease` is the row as it was before this report.
 */
export async function reportLongKernels(ctx: Context, runs: readonly Runs[]): Promise<void> {
  const running = runs.flatMap(({ lease, running }) => (running === null ? [] : [{ lease, running }]));
  if (running.length === 0) return;
  const limits = await limitsOf(ctx, new Set(running.map(({ lease }) => lease.teamId)));
  const fresh = running.filter(({ lease, running: now }) => {
    const limit = limits.get(lease.teamId) ?? env().SLUICE_LONG_KERNEL_SECONDS;
    return limit > 0 && now.seconds >= limit && !wasLong(lease.running, now, limit);
  });
  if (fresh.length === 0) return;
  const teamIds = fresh.map(({ lease }) => lease.teamId);
  const people = await ctx.db
    .select({ teamId: teams.id, team: teams.name, lead: memberships.userId })
    .from(teams)
    .leftJoin(memberships, and(eq(memberships.teamId, teams.id), eq(memberships.role, "lead")))
    .where(inArray(teams.id, teamIds));
  const entries = fresh.map(({ lease, running }): AuditEntry => {
    const { teamId, gpuId, milli, id: subject } = lease;
    return { by: ctx, input: { action: "lease.long-kernel", subject, teamId, detail: { ...running, gpuId, milli } } };
  });
  const told = fresh.flatMap(({ lease, running: { kernel, seconds } }) => {
    const ofTeam = people.filter(({ teamId }) => teamId === lease.teamId);
    const readers = new Set([lease.userId, ...ofTeam.flatMap(({ lead }) => lead ?? [])]);
    const team = ofTeam[0]?.team ?? "";
    return [...readers].map((reader) => longKernel(reader, theirs([lease]), { kernel, seconds, team }));
  });
  await inTransaction(ctx, async (tx) => {
    await record(tx.db, entries, []);
    await writeNotices(tx, told);
  });
}

/** Whether the same launch was above the limit in the report before. */
function wasLong(before: RunningKernel | null, now: RunningKernel, limit: number): boolean {
  return before !== null && before.kernel === now.kernel && before.seconds >= limit && before.seconds <= now.seconds;
}

/** What teams say themselves. */
async function limitsOf(ctx: Context, teamIds: ReadonlySet<string>): Promise<Map<string, number | null>> {
  const { teamId, longKernelSeconds } = teamPolicies;
  const rows = await ctx.db
    .select({ teamId, longKernelSeconds })
    .from(teamPolicies)
    .where(inArray(teamId, [...teamIds]));
  return new Map(rows.map((row) => [row.teamId, row.longKernelSeconds]));
}
