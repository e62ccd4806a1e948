import { and, eq, ne } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type RemoveMemberInput, removeMemberInput, type TeamView } from "#server/contracts/team.ts";
import type { Transaction } from "#server/db/client.ts";
import { leaseRequests, leases, memberships, workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { lockGpuTypes } from "#server/services/lease/world.ts";
import { get } from "#server/services/team/get.ts";
import { stopLocked } from "#server/services/workspace/stop.ts";

/**
 * Takes somebody out of the team. Their workspaces of this team stop at once and give their GPUs back; they stay the
 * team's until they are removed.
 */
export async function removeMember(ctx: Context, raw: RemoveMemberInput): Promise<TeamView> {
  const input = parse(removeMemberInput, raw);
  authorize(ctx.principal, "team.remove-member", { teamId: input.teamId });
  return await inTransaction(ctx, async (tx) => {
    const [before] = await tx.db
      .delete(memberships)
      .where(and(eq(memberships.teamId, input.teamId), eq(memberships.userId, input.userId)))
      .returning({ role: memberships.role });
    if (before === undefined) throw new SluiceError("not-found", "That person is not in this team.");
    await audit(tx, {
      action: "team.remove-member",
      subject: input.userId,
      teamId: input.teamId,
      detail: { before },
    });
    await stopWorkspaces(tx, input);
    return await get({ ...tx, principal: { kind: "system" } }, { id: input.teamId });
  });
}

async function stopWorkspaces(tx: Context & { db: Transaction }, { teamId, userId }: RemoveMemberInput): Promise<void> {
  const running = await tx.db
    .select()
    .from(workspaces)
    .where(and(eq(workspaces.teamId, teamId), eq(workspaces.ownerId, userId), eq(workspaces.desired, "running")))
    .orderBy(workspaces.id)
    .for("no key update");
  // All types at once, in the order that everybody takes them: workspaces one by one would mix it.
  const held = await tx.db
    .selectDistinct({ gpuType: leases.gpuType })
    .from(leases)
    .where(and(eq(leases.teamId, teamId), eq(leases.userId, userId), ne(leases.state, "ended")));
  const waiting = await tx.db
    .selectDistinct({ gpuType: leaseRequests.gpuType })
    .from(leaseRequests)
    .where(and(eq(leaseRequests.teamId, teamId), eq(leaseRequests.userId, userId), eq(leaseRequests.state, "queued")));
  await lockGpuTypes(
    tx.db,
    [...held, ...waiting].map((row) => row.gpuType),
  );
  for (const row of running) await stopLocked(tx, row);
}
