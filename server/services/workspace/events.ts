import { and, asc, eq, gt } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import {
  type WorkspaceEventList,
  type WorkspaceEventsInput,
  workspaceEventsInput,
} from "#server/contracts/workspace.ts";
import { workspaceEvents } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

/** Steps and log lines, oldest first, after a sequence number. */
export async function events(ctx: Context, raw: WorkspaceEventsInput): Promise<WorkspaceEventList> {
  const input = parse(workspaceEventsInput, raw);
  await loadWorkspace(ctx, input.id, "workspace.read");
  const rows = await ctx.db
    .select()
    .from(workspaceEvents)
    .where(and(eq(workspaceEvents.workspaceId, input.id), gt(workspaceEvents.seq, input.after)))
    .orderBy(asc(workspaceEvents.seq))
    .limit(input.limit);
  return {
    events: rows.map((row) => ({
      seq: row.seq,
      generation: row.generation,
      at: row.at.toISOString(),
      kind: row.kind,
      step: row.step,
      message: row.message,
    })),
  };
}
