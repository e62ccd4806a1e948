/** Limits for the files of removed workspaces, per owner. No other limit counts these files. */
import { and, asc, desc, eq, inArray } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { notify } from "#server/live.ts";
import { isRestorable } from "./kept-files.ts";

export type KeptWorkspace = { id: string; launcher: string; filesKeptUntil: Date };

/** Bytes of the files of a removed workspace; 0 where the files lie in a volume of fixed size. */
export type MeasureKept = (kept: KeptWorkspace) => Promise<number>;

type Sized = { id: string; bytes: number };

/** Maximum bytes of the files of one person's removed workspaces. */
export const mostKeptBytes = (): number => env().SLUICE_REMOVED_FILES_GIB * 1024 ** 3;

/**
 * The removed workspaces of one person above a limit, from the newest removal to the oldest. The newest removal
 * is never among them, so that a person can undo it.
 */
export function aboveLimits(newestFirst: readonly Sized[], limits: { count: number; bytes: number }): string[] {
  let sum = 0;
  const first = newestFirst.findIndex(({ bytes }, index) => {
    sum += bytes;
    return index > 0 && (index >= limits.count || sum > limits.bytes);
  });
  return first === -1 ? [] : newestFirst.slice(first).map(({ id }) => id);
}

/** Gives up the files of a person's oldest removed workspaces above the maximum number. */
export async function giveUpOldest(tx: Context & { db: Transaction }, ownerId: string): Promise<void> {
  const rows = await tx.db
    .select({ id: workspaces.id })
    .from(workspaces)
    .where(and(eq(workspaces.ownerId, ownerId), isRestorable()))
    .orderBy(desc(workspaces.filesKeptUntil), asc(workspaces.id))
    .offset(env().SLUICE_REMOVED_WORKSPACES);
  await giveUp(
    tx,
    rows.map(({ id }) => id),
  );
}

/** Gives up the files of removed workspaces above their owners' limits, oldest first. Returns their number. */
export async function limitKeptFiles(ctx: Context, measure: MeasureKept): Promise<number> {
  authorize(ctx.principal, "workspace.limit-kept-files");
  const rows = await ctx.db
    .select({
      id: workspaces.id,
      ownerId: workspaces.ownerId,
      launcher: workspaces.launcher,
      filesKeptUntil: workspaces.filesKeptUntil,
    })
    .from(workspaces)
    .where(and(isRestorable(), eq(workspaces.observed, "stopped")))
    .orderBy(asc(workspaces.ownerId), desc(workspaces.filesKeptUntil), asc(workspaces.id));
  const limits = { count: env().SLUICE_REMOVED_WORKSPACES, bytes: mostKeptBytes() };
  let total = 0;
  for (const kept of Map.groupBy(rows, ({ ownerId }) => ownerId).values()) {
    if (kept.length === 1) continue;
    const sized: Sized[] = [];
    for (const { filesKeptUntil, ...each } of kept) {
      if (filesKeptUntil !== null) sized.push({ id: each.id, bytes: await measure({ ...each, filesKeptUntil }) });
    }
    const ids = aboveLimits(sized, limits);
    if (ids.length > 0) total += await inTransaction(ctx, async (tx) => await giveUp(tx, ids));
  }
  return total;
}

/** Marks the files for the reconciler to delete. Skips workspaces that were restored in the meantime. */
async function giveUp(tx: Context & { db: Transaction }, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0;
  // In one order, so that two removals do not wait for each other.
  const held = await tx.db
    .select({ id: workspaces.id, name: workspaces.name, teamId: workspaces.teamId })
    .from(workspaces)
    .where(and(inArray(workspaces.id, [...ids]), isRestorable()))
    .orderBy(asc(workspaces.id))
    .for("no key update");
  if (held.length === 0) return 0;
  const given = held.map(({ id }) => id);
  await tx.db.update(workspaces).set({ filesKeptUntil: null }).where(inArray(workspaces.id, given));
  for (const { id, name, teamId } of held) {
    const detail = { name, reason: "limit of removed workspaces" };
    await audit(tx, { action: "workspace.delete-files", subject: id, teamId, detail });
    await notify(tx.db, "workspace", id);
  }
  return held.length;
}
