import { asc, desc, eq } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { EgressRefusalList } from "#server/contracts/egress.ts";
import { type WorkspaceInput, workspaceInput } from "#server/contracts/workspace.ts";
import { egressRefusals } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

/** Connections of a workspace that its team's outgoing network policy refused, newest first. */
export async function refusals(ctx: Context, raw: WorkspaceInput): Promise<EgressRefusalList> {
  const { id } = parse(workspaceInput, raw);
  await loadWorkspace(ctx, id, "workspace.read");
  const rows = await ctx.db
    .select()
    .from(egressRefusals)
    .where(eq(egressRefusals.workspaceId, id))
    .orderBy(desc(egressRefusals.lastAt), asc(egressRefusals.host), asc(egressRefusals.port));
  return {
    refusals: rows.map(({ host, port, reason, count, lastAt }) => ({
      ...{ host, port, reason, count, lastAt: lastAt.toISOString() },
    })),
  };
}
