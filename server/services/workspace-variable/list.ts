import { asc, eq } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { type WorkspaceInput, workspaceInput } from "#server/contracts/workspace.ts";
import type { WorkspaceVariableList } from "#server/contracts/workspace-variable.ts";
import { workspaceVariables } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { unseal } from "#server/secrets.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

/** A workspace's variables, for its owner; of a secret only the name. */
export async function list(ctx: Context, raw: WorkspaceInput): Promise<WorkspaceVariableList> {
  const { id } = parse(workspaceInput, raw);
  const workspace = await loadWorkspace(ctx, id, "workspace.change");
  const rows = await ctx.db
    .select()
    .from(workspaceVariables)
    .where(eq(workspaceVariables.workspaceId, id))
    .orderBy(asc(workspaceVariables.name));
  const variables = await Promise.all(
    rows.map(async ({ name, secret, sealed, updatedAt, version }) => ({
      ...{ name, secret, version, updatedAt: updatedAt.toISOString() },
      // One that cannot be opened any more is shown without its value, so that it can be set again.
      value: secret ? null : await unseal(sealed, `${id}/${name}`).catch(() => null),
    })),
  );
  const { startedAt, variablesChangedAt, observed } = workspace;
  const restartNeeded =
    observed === "running" && variablesChangedAt !== null && startedAt !== null && variablesChangedAt > startedAt;
  return { variables, restartNeeded };
}
