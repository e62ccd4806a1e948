import { and, eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type AddMemberInput, addMemberInput, type TeamView } from "#server/contracts/team.ts";
import { memberships, users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { get } from "#server/services/team/get.ts";
import { endInvitations } from "#server/services/user/join-invited.ts";

/** Puts somebody who has an account into the team, or changes the role there; it stays, whatever a group says. */
export async function addMember(ctx: Context, raw: AddMemberInput): Promise<TeamView> {
  const input = parse(addMemberInput, raw);
  authorize(ctx.principal, "team.add-member", { teamId: input.teamId });
  return await inTransaction(ctx, async (tx) => {
    await get(tx, { id: input.teamId });
    const [user] = await tx.db.select({ id: users.id }).from(users).where(eq(users.email, input.email));
    if (user === undefined) {
      throw new SluiceError("not-found", `Nobody here has the e-mail ${input.email}. Invite them by a link.`);
    }
    const membership = and(eq(memberships.teamId, input.teamId), eq(memberships.userId, user.id));
    const [before] = await tx.db.select().from(memberships).where(membership).for("update");
    refuseStale(input.version, before, "their role");
    await tx.db
      .insert(memberships)
      .values({ teamId: input.teamId, userId: user.id, role: input.role, createdAt: tx.now() })
      .onConflictDoUpdate({
        target: [memberships.teamId, memberships.userId],
        set: { role: input.role, byGroup: false, version: (before?.version ?? 0) + 1 },
      });
    await audit(tx, {
      action: "team.add-member",
      subject: user.id,
      teamId: input.teamId,
      detail: { role: input.role, before: before === undefined ? null : { role: before.role } },
    });
    await endInvitations(tx, { teamId: input.teamId, email: input.email });
    await notify(tx.db, "people", user.id);
    return await get(tx, { id: input.teamId });
  });
}
