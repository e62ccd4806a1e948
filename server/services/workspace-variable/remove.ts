import { and, eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import {
  type RemoveVariableInput,
  removeVariableInput,
  type WorkspaceVariableList,
} from "#server/contracts/workspace-variable.ts";
import { workspaces, workspaceVariables } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { list } from "./list.ts";

/** Removes one variable; what runs already keeps it until a restart. */
export async function remove(ctx: Context, raw: RemoveVariableInput): Promise<WorkspaceVariableList> {
  const { id, name } = parse(removeVariableInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadWorkspace(tx, id, "workspace.change", { lock: true });
    const [gone] = await tx.db
      .delete(workspaceVariables)
      .where(and(eq(workspaceVariables.workspaceId, id), eq(workspaceVariables.name, name)))
      .returning({ name: workspaceVariables.name });
    if (gone === undefined) throw new SluiceError("not-found", `This workspace has no variable ${name}.`);
    await tx.db.update(workspaces).set({ variablesChangedAt: tx.now() }).where(eq(workspaces.id, id));
    await audit(tx, { action: "workspace.remove-variable", subject: id, teamId: row.teamId, detail: { name } });
    await notify(tx.db, "workspace", id);
    return await list(tx, { id });
  });
}
