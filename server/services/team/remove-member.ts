import { and, eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type RemoveMemberInput, removeMemberInput, type TeamView } from "#server/contracts/team.ts";
import { memberships } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { giveUpOfPerson } from "#server/services/reservation/give-up.ts";
import { get } from "#server/services/team/get.ts";
import { stopOfPerson } from "#server/services/workspace/stop-of-person.ts";

/**
 * Takes somebody out of the team. Their workspaces of this team stop at once and give their GPUs back; they stay the
 * team's until they are removed. What is reserved for them alone is given up.
 */
export async function removeMember(ctx: Context, raw: RemoveMemberInput): Promise<TeamView> {
  const input = parse(removeMemberInput, raw);
  authorize(ctx.principal, "team.remove-member", { teamId: input.teamId });
  return await inTransaction(ctx, async (tx) => {
    // With the membership the rows would go, and nobody would read of it.
    await giveUpOfPerson(tx, input);
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
    await notify(tx.db, "people", input.userId);
    await stopOfPerson(tx, input);
    return await get({ ...tx, principal: { kind: "system" } }, { id: input.teamId });
  });
}
