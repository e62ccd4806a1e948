import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import { type RestoreWorkspaceInput, restoreWorkspaceInput, type WorkspaceView } from "#server/contracts/workspace.ts";
import type { Transaction } from "#server/db/client.ts";
import { teams, workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { get } from "#server/services/workspace/get.ts";
import { loadRemoved } from "#server/services/workspace/load-removed.ts";
import { refuseTakenName } from "#server/services/workspace/refuse-taken-name.ts";

/** Brings a removed workspace back, stopped, with its files, packages and settings. */
export async function restore(ctx: Context, raw: RestoreWorkspaceInput): Promise<WorkspaceView> {
  const input = parse(restoreWorkspaceInput, raw);
  const write = () =>
    inTransaction(ctx, async (tx) => {
      const row = await loadRemoved(tx, input.id, "workspace.restore");
      await refuseArchived(tx, row.teamId);
      const name = input.name ?? row.name;
      // Processes of the removed workspace may still be ending; the reconciler waits for them.
      const observed = row.observed === "stopped" ? "stopped" : "stopping";
      await tx.db
        .update(workspaces)
        .set({ name, desired: "stopped", observed, filesKeptUntil: null })
        .where(eq(workspaces.id, row.id));
      const detail = { name, ...(name !== row.name && { was: row.name }) };
      await audit(tx, { action: "workspace.restore", subject: row.id, teamId: row.teamId, detail });
      await notify(tx.db, "workspace", row.id);
      return await get(tx, { id: row.id });
    });
  return await refuseTakenName(input.name, write, "Its owner has");
}

/** Refuses a restore into an archived team. The lock makes a concurrent archive wait for this transaction. */
async function refuseArchived(tx: Context & { db: Transaction }, teamId: string): Promise<void> {
  const [team] = await tx.db.select().from(teams).where(eq(teams.id, teamId)).for("key share");
  if (team === undefined || team.archivedAt === null) return;
  const message = `Team ${team.name} is archived. Ask an admin to restore the team first.`;
  throw new SluiceError("conflict", message);
}
