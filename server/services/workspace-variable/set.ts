import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import {
  type SetVariableInput,
  setVariableInput,
  type WorkspaceVariableList,
} from "#server/contracts/workspace-variable.ts";
import { workspaces, workspaceVariables } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { seal } from "#server/secrets.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { list } from "./list.ts";

const MOST = 100;

/** Sets one variable for the next start of the workspace. Its value goes into no log, event or audit. */
export async function set(ctx: Context, raw: SetVariableInput): Promise<WorkspaceVariableList> {
  const { id, name, value, secret, version } = parse(setVariableInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadWorkspace(tx, id, "workspace.change", { lock: true });
    const known = await tx.db.select().from(workspaceVariables).where(eq(workspaceVariables.workspaceId, id));
    const before = known.find((each) => each.name === name);
    if (version === 0 && before !== undefined) {
      throw new SluiceError("conflict", `This workspace has a variable ${name} already. Change that one.`);
    }
    refuseStale(version, before, `the variable ${name}`);
    if (before === undefined && known.length >= MOST) {
      throw new SluiceError("refused", `A workspace has at most ${MOST} variables. Remove one that is not used.`);
    }
    if (before?.secret === true && !secret) {
      throw new SluiceError("refused", `${name} is a secret. Remove it first to make a variable of this name.`);
    }
    const written = {
      secret,
      sealed: await seal(value, `${id}/${name}`),
      updatedAt: tx.now(),
      version: (before?.version ?? 0) + 1,
    };
    await tx.db
      .insert(workspaceVariables)
      .values({ workspaceId: id, name, ...written })
      .onConflictDoUpdate({ target: [workspaceVariables.workspaceId, workspaceVariables.name], set: written });
    await tx.db.update(workspaces).set({ variablesChangedAt: tx.now() }).where(eq(workspaces.id, id));
    await audit(tx, { action: "workspace.set-variable", subject: id, teamId: row.teamId, detail: { name, secret } });
    await notify(tx.db, "workspace", id);
    return await list(tx, { id });
  });
}
