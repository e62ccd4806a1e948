/** Reads and writes of proposed environments by the loop that checks them. Every write names the check it is about. */
import { and, asc, eq, inArray, isNull, ne, not, notInArray, or, sql } from "drizzle-orm";
import { audit, type Context, inTransaction, systemContext } from "#server/context.ts";
import { formatMilli } from "#server/contracts/amount.ts";
import { type Proposal, proposal } from "#server/contracts/image.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { gpuServers, gpus, images, imageVersions, quotas, workspaces } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";
import { launcherFor } from "#server/launchers/choice.ts";
import { notify } from "#server/live.ts";
import { wasApproved } from "#server/services/image/order.ts";
import { remove } from "#server/services/workspace/remove.ts";

type Row = typeof imageVersions.$inferSelect;
export type Checked = Row & { name: string; proposal: Proposal };
type Change = Partial<typeof imageVersions.$inferInsert>;

/** What is to be checked first: what somebody before us has begun, else what waits longest. */
export async function nextCheck(db: Database): Promise<Checked | undefined> {
  const [found] = await db
    .select({ row: imageVersions, name: images.name })
    .from(imageVersions)
    .innerJoin(images, eq(images.id, imageVersions.imageId))
    .where(and(inArray(imageVersions.check, ["running", "waiting"]), ne(imageVersions.state, "retired")))
    .orderBy(sql`${imageVersions.check} = 'waiting'`, asc(imageVersions.createdAt))
    .limit(1);
  return found && { ...found.row, name: found.name, proposal: proposal.parse(found.row.proposal) };
}

/** Whether this very check is still wanted: nobody has taken the proposal back. */
export async function isWanted(db: Database, { id, checkRun }: Checked): Promise<boolean> {
  const [row] = await db.select({ id: imageVersions.id }).from(imageVersions).where(wanted({ id, checkRun }));
  return row !== undefined;
}

const wanted = ({ id, checkRun }: Pick<Row, "id" | "checkRun">) =>
  and(
    eq(imageVersions.id, id),
    eq(imageVersions.checkRun, checkRun),
    inArray(imageVersions.check, ["running", "waiting"]),
    ne(imageVersions.state, "retired"),
  );

/** Changes the row while the check is wanted; throws when it is not. */
export async function change(db: Database | Transaction, row: Checked, set: Change, action?: string): Promise<void> {
  await inTransaction(systemContext(db), async (tx) => {
    const changed = await tx.db.update(imageVersions).set(set).where(wanted(row)).returning({ id: imageVersions.id });
    if (changed.length === 0) throw new Error("The proposal was taken back.");
    if (action !== undefined) {
      const detail = { name: row.name, version: set.version ?? row.version, message: set.checkMessage };
      await audit(tx, { action, subject: row.id, teamId: row.teamId ?? undefined, detail });
    }
    await notify(tx.db, "environment", row.id);
  });
}

/** A GPU type that the team may borrow and that has devices which take leases; undefined: none. */
export async function gpuTypeFor(
  db: Database,
  teamId: string,
): Promise<{ gpuType: string; milli: number } | undefined> {
  const [found] = await db
    .select({ gpuType: quotas.gpuType, limit: quotas.limitMilli })
    .from(quotas)
    .innerJoin(gpus, and(eq(gpus.gpuType, quotas.gpuType), eq(gpus.state, "active"), isNull(gpus.drainedAt)))
    .innerJoin(gpuServers, and(eq(gpuServers.id, gpus.serverId), eq(gpuServers.state, "online")))
    .where(and(eq(quotas.teamId, teamId), sql`${quotas.limitMilli} > 0`))
    .orderBy(quotas.gpuType)
    .limit(1);
  return found && { gpuType: found.gpuType, milli: Math.min(250, found.limit) };
}

/** The workspace that the version is tested in: a real one of whoever proposed it, made unless it is there. */
export async function testWorkspace(db: Database, row: Checked): Promise<string> {
  const { teamId, proposedBy } = row;
  const launcher = launcherFor(row.name);
  if (teamId === null || proposedBy === null) throw new Error("Whoever proposed it, or their team, is gone.");
  if (launcher === undefined) throw new Error("No launcher is configured (SLUICE_LAUNCHERS).");
  const before = row.checkWorkspaceId;
  if (before !== null && (await workspaceOf(db, before))?.desired === "running") return before;
  const gpu = await gpuTypeFor(db, teamId);
  const id = newId("ws");
  await inTransaction(systemContext(db), async (tx) => {
    await removeTestOf(tx, row);
    await tx.db.insert(workspaces).values({
      ...{ id, name: `test of ${row.name} ${id.slice(-6)}`, ownerId: proposedBy, teamId, launcher },
      ...{ imageVersionId: row.id, desired: "running", observed: "pending", createdAt: tx.now() },
      ...(gpu === undefined ? {} : { gpuType: gpu.gpuType, defaultAmount: formatMilli(gpu.milli) }),
    });
    await audit(tx, { action: "image.test", subject: row.id, teamId, detail: { name: row.name, workspace: id } });
    await notify(tx.db, "workspace", id);
    await change(tx.db, row, { checkWorkspaceId: id });
  });
  return id;
}

export async function workspaceOf(db: Database, id: string) {
  const [found] = await db.select().from(workspaces).where(eq(workspaces.id, id));
  return found;
}

/** Writes the outcome of a check and removes its test workspace, in one transaction. */
export async function finish(db: Database, row: Checked, outcome: Change, action: string): Promise<void> {
  await inTransaction(systemContext(db), async (tx) => {
    await removeTestOf(tx, row);
    await change(tx.db, row, { ...outcome, state: "proposed", checkWorkspaceId: null }, action);
  });
}

/** Removes the test workspace that a proposal names, if there is one. The caller writes another one, or none. */
async function removeTestOf(tx: Context & { db: Transaction }, { id }: Pick<Checked, "id">): Promise<void> {
  const [test] = await tx.db
    .select({ id: workspaces.id })
    .from(imageVersions)
    .innerJoin(workspaces, and(eq(workspaces.id, imageVersions.checkWorkspaceId), ne(workspaces.desired, "removed")))
    .where(eq(imageVersions.id, id))
    .for("update", { of: imageVersions });
  if (test !== undefined) await remove(tx, test);
}

/**
 * Removes test workspaces without a running check. Only checks make workspaces of versions that were never approved, so
 * the version identifies them. The broker that runs the checks calls this between two checks.
 */
export async function sweepTests(db: Database): Promise<void> {
  const left = await db
    .select({ id: workspaces.id })
    .from(workspaces)
    .innerJoin(imageVersions, eq(imageVersions.id, workspaces.imageVersionId))
    .where(
      and(
        ne(workspaces.desired, "removed"),
        not(wasApproved),
        or(
          eq(imageVersions.state, "retired"),
          notInArray(imageVersions.check, ["running", "waiting"]),
          sql`${imageVersions.checkWorkspaceId} is distinct from ${workspaces.id}`,
        ),
      ),
    );
  for (const test of left) await remove(systemContext(db), test);
}
