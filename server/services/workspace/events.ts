import { and, asc, desc, eq, gt, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import {
  type WorkspaceEventList,
  type WorkspaceEventsInput,
  workspaceEventsInput,
} from "#server/contracts/workspace.ts";
import { workspaceEvents } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

/**
 * Steps and log lines, oldest first: those after a sequence number, or without one the end of the log, where the steps
 * take the place of older lines.
 */
export async function events(ctx: Context, raw: WorkspaceEventsInput): Promise<WorkspaceEventList> {
  const { id, after, generation, limit } = parse(workspaceEventsInput, raw);
  await loadWorkspace(ctx, id, "workspace.read");
  const rows = await ctx.db
    .select()
    .from(workspaceEvents)
    .where(
      and(
        eq(workspaceEvents.workspaceId, id),
        generation === undefined ? undefined : eq(workspaceEvents.generation, generation),
        after === undefined ? undefined : gt(workspaceEvents.seq, after),
      ),
    )
    .orderBy(...(after === undefined ? [stepsFirst, desc(workspaceEvents.seq)] : [asc(workspaceEvents.seq)]))
    .limit(limit);
  return {
    events: rows
      .sort((a, b) => a.seq - b.seq)
      .map((row) => ({
        seq: row.seq,
        generation: row.generation,
        at: row.at.toISOString(),
        kind: row.kind,
        step: row.step,
        message: row.message,
      })),
  };
}

const stepsFirst = sql`${workspaceEvents.kind} = 'log'`;
