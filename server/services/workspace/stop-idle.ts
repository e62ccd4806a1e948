import { and, eq, isNull } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { teamPolicies, workspaces } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { formatSpan } from "#server/span.ts";
import { idleLimit, stopTime } from "./idle-limit.ts";
import type { WorkspaceRow } from "./load.ts";
import { stopLocked } from "./stop.ts";

const running = and(isNull(workspaces.podUid), eq(workspaces.desired, "running"), eq(workspaces.observed, "running"));

type Candidate = { row: WorkspaceRow; limit: number; stopsAt: Date };

/** Running workspaces that have a limit, and when each is stopped as things stand. The caller has authorised. */
export async function idleCandidates(ctx: Context): Promise<Candidate[]> {
  const rows = await ctx.db
    .select({ row: workspaces, team: teamPolicies.workspaceIdleSeconds })
    .from(workspaces)
    .leftJoin(teamPolicies, eq(teamPolicies.teamId, workspaces.teamId))
    .where(running);
  const installation = env().SLUICE_WORKSPACE_IDLE_SECONDS;
  return rows.flatMap(({ row, team }) => {
    const limit = idleLimit({ own: row.idleSeconds, team, installation });
    const stopsAt = stopTime(row, limit);
    return limit === null || stopsAt === null ? [] : [{ row, limit, stopsAt }];
  });
}

/** Stops every workspace that has been idle for longer than its limit, and says so on its page. Their ids. */
export async function stopIdle(ctx: Context): Promise<string[]> {
  authorize(ctx.principal, "workspace.stop-idle");
  const stopped: string[] = [];
  for (const { row, limit, stopsAt } of await idleCandidates(ctx)) {
    const due = (at: Date | null) => at !== null && at <= ctx.now();
    if (!due(stopsAt)) continue;
    const done = await inTransaction(ctx, async (tx) => {
      const [now] = await tx.db
        .select()
        .from(workspaces)
        .where(and(running, eq(workspaces.id, row.id)))
        .for("no key update");
      // Something may have happened since we looked.
      if (now === undefined || !due(stopTime(now, limit))) return false;
      await stopLocked(tx, now, { because: "idle", idleSeconds: limit });
      const message = `Stopped after ${formatSpan(limit)} without activity. Files and packages are kept.`;
      await tx.db.update(workspaces).set({ message }).where(eq(workspaces.id, row.id));
      return true;
    });
    if (done) stopped.push(row.id);
  }
  return stopped;
}
