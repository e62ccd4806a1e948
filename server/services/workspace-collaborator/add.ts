import { and, eq, isNull, or, sql } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import {
  type AddCollaboratorInput,
  addCollaboratorInput,
  type WorkspaceCollaborators,
} from "#server/contracts/workspace-collaborator.ts";
import { users, workspaceCollaborators } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { withdrawNotices } from "#server/services/notice/withdraw.ts";
import { invitationKey, invited } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { list } from "./list.ts";

/** Invites somebody who has an account into a workspace, or changes what they may do there, and tells them. */
export async function add(ctx: Context, raw: AddCollaboratorInput): Promise<WorkspaceCollaborators> {
  const { id, person, role, version } = parse(addCollaboratorInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const row = await loadWorkspace(tx, id, "workspace.change", { lock: true });
    const found = await findPerson(tx, person);
    if (found.id === row.ownerId) {
      throw new SluiceError("conflict", "person: This workspace is theirs. Only others can be invited.");
    }
    const is = and(eq(workspaceCollaborators.workspaceId, id), eq(workspaceCollaborators.userId, found.id));
    const [before] = await tx.db.select().from(workspaceCollaborators).where(is);
    refuseStale(version, before, "their role");
    await tx.db
      .insert(workspaceCollaborators)
      .values({ workspaceId: id, userId: found.id, role, createdAt: tx.now() })
      .onConflictDoUpdate({
        target: [workspaceCollaborators.workspaceId, workspaceCollaborators.userId],
        set: { role, version: (before?.version ?? 0) + 1 },
      });
    const key = invitationKey(id, found.id);
    await withdrawNotices(tx, [key]);
    const [owner] = await tx.db.select({ name: users.name }).from(users).where(eq(users.id, row.ownerId));
    await writeNotices(tx, [invited(found.id, owner?.name ?? "Somebody", { id, name: row.name, role })]);
    const detail = { userId: found.id, role };
    await audit(tx, { action: "workspace.add-collaborator", subject: id, teamId: row.teamId, detail });
    await notify(tx.db, "workspace", id);
    return await list(tx, { id });
  });
}

/** By e-mail, or by a name that only one person has. There is no search: who is here is not everybody's to know. */
async function findPerson(ctx: Context, person: string): Promise<{ id: string }> {
  const named = or(eq(users.email, person.toLowerCase()), eq(sql`lower(${users.name})`, person.toLowerCase()));
  const rows = await ctx.db
    .select({ id: users.id, email: users.email })
    .from(users)
    .where(and(named, isNull(users.disabledAt)));
  const [only, ...others] = rows.length > 1 ? rows.filter((row) => row.email === person.toLowerCase()) : rows;
  if (only !== undefined && others.length === 0) return only;
  if (rows.length > 1) {
    throw new SluiceError("conflict", `person: ${rows.length} people here have this name. Write the e-mail instead.`);
  }
  throw new SluiceError(
    "not-found",
    `person: Nobody here has the name or e-mail ${person}. A team lead or an admin can invite them to Sluice first.`,
  );
}
