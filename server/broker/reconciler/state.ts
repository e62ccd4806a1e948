/** Reads and writes of workspace rows by the reconciler. Every write names the generation it is about. */
import { and, eq, isNull, lte, ne, or } from "drizzle-orm";
import { audit, inTransaction, systemContext } from "#server/context.ts";
import { proposal } from "#server/contracts/image.ts";
import type { Database } from "#server/db/client.ts";
import { images, imageVersions, users, workspaceSizes, workspaces } from "#server/db/schema/index.ts";
import type { WorkspaceSpec } from "#server/launchers/launcher.ts";
import { notify } from "#server/live.ts";

export type WorkspaceRow = typeof workspaces.$inferSelect;
type Change = Partial<typeof workspaces.$inferInsert>;

export async function readWorkspace(db: Database, id: string): Promise<WorkspaceRow | undefined> {
  const [row] = await db.select().from(workspaces).where(eq(workspaces.id, id));
  return row;
}

/** Everything that may need work: what is not settled, and what runs and may have ended by itself. */
export async function openWorkspaces(db: Database, now: Date): Promise<string[]> {
  const rows = await db
    .select({ id: workspaces.id })
    .from(workspaces)
    .where(
      and(
        isNull(workspaces.podUid),
        or(
          and(eq(workspaces.desired, "running"), ne(workspaces.observed, "failed")),
          and(eq(workspaces.desired, "stopped"), ne(workspaces.observed, "stopped")),
          and(
            eq(workspaces.desired, "removed"),
            ne(workspaces.observed, "removed"),
            or(
              ne(workspaces.observed, "stopped"),
              isNull(workspaces.filesKeptUntil),
              lte(workspaces.filesKeptUntil, now),
            ),
          ),
        ),
      ),
    )
    .orderBy(workspaces.createdAt);
  return rows.map((row) => row.id);
}

/**
 * Marks the files as given up before their deletion: from here on the workspace cannot be restored. False if it was
 * restored or removed again in the meantime.
 */
export async function giveUpFiles(db: Database, { id }: Pick<WorkspaceRow, "id">, now: Date): Promise<boolean> {
  const given = await db
    .update(workspaces)
    .set({ filesKeptUntil: null })
    .where(
      and(
        eq(workspaces.id, id),
        eq(workspaces.desired, "removed"),
        or(isNull(workspaces.filesKeptUntil), lte(workspaces.filesKeptUntil, now)),
      ),
    )
    .returning({ id: workspaces.id });
  return given.length > 0;
}

/** Changes the row unless a newer start has begun; says whether it did. */
export async function change(
  db: Database,
  row: Pick<WorkspaceRow, "id" | "generation">,
  set: Change,
): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const changed = await tx
      .update(workspaces)
      .set(set)
      .where(and(eq(workspaces.id, row.id), eq(workspaces.generation, row.generation)))
      .returning({ id: workspaces.id });
    if (changed.length > 0) await notify(tx, "workspace", row.id);
    return changed.length > 0;
  });
}

/** Like `change`, only while it is still wanted running, and in the audit. */
export async function changeWhileWanted(
  db: Database,
  row: WorkspaceRow,
  set: Change,
  action?: { action: string; detail: Record<string, unknown> },
): Promise<boolean> {
  return await inTransaction(systemContext(db), async (tx) => {
    const changed = await tx.db
      .update(workspaces)
      .set(set)
      .where(
        and(eq(workspaces.id, row.id), eq(workspaces.generation, row.generation), eq(workspaces.desired, "running")),
      )
      .returning({ id: workspaces.id });
    if (changed.length === 0) return false;
    if (action !== undefined) await audit(tx, { ...action, subject: row.id, teamId: row.teamId });
    await notify(tx.db, "workspace", row.id);
    return true;
  });
}

/** What a workspace runs: an environment of this installation, what was locked here, or an image by its digest. */
export async function environmentOf(
  db: Database,
  row: WorkspaceRow,
): Promise<Pick<WorkspaceSpec, "environment" | "definition" | "image">> {
  const [found] = await db
    .select({ name: images.name, version: imageVersions })
    .from(imageVersions)
    .innerJoin(images, eq(images.id, imageVersions.imageId))
    .where(eq(imageVersions.id, row.imageVersionId ?? ""));
  if (found === undefined) throw new Error("The environment of this workspace is no longer in the catalogue.");
  const { definition: word, proposal: proposed, lock, spec } = found.version;
  if (proposed === null) return { environment: found.name };
  const { source } = proposal.parse(proposed);
  if (source.kind === "image") return { environment: found.name, image: source.reference };
  if (word === null || lock === null) throw new Error(`${found.name} ${found.version.version} is not locked.`);
  return { environment: word, definition: { word, lock, base: source.base, spec } };
}

/** The size that its next start gives it; undefined: what the launcher gives to all. */
export async function sizeOf(db: Database, row: WorkspaceRow): Promise<WorkspaceSpec["size"]> {
  const { sizeId, sizeCpuMilli, sizeMemoryBytes } = row;
  if (sizeCpuMilli === null || sizeMemoryBytes === null) return undefined;
  const [offered] = await db
    .select({ name: workspaceSizes.name })
    .from(workspaceSizes)
    .where(eq(workspaceSizes.id, sizeId ?? ""));
  return { ...offered, cpuMilli: sizeCpuMilli, memoryBytes: sizeMemoryBytes };
}

/** Whether a person is the first admin, who alone may launch where workspaces cannot be isolated. */
export async function isFirstAdmin(db: Database, userId: string): Promise<boolean> {
  const [first] = await db
    .select({ id: users.id })
    .from(users)
    .where(eq(users.isAdmin, true))
    .orderBy(users.createdAt, users.id)
    .limit(1);
  return first?.id === userId;
}
