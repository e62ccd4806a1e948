import { and, eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type InvitationList, type RevokeInvitationInput, revokeInvitationInput } from "#server/contracts/user.ts";
import { oneTimeCodes } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { listInvitations, pendingIn } from "./list-invitations.ts";

/** Ends an invitation: its link opens nothing any more. Answers those that are left. */
export async function revokeInvitation(ctx: Context, raw: RevokeInvitationInput): Promise<InvitationList> {
  const { teamId, id } = parse(revokeInvitationInput, raw);
  authorize(ctx.principal, "user.invite", { teamId });
  return await inTransaction(ctx, async (tx) => {
    const [ended] = await tx.db
      .delete(oneTimeCodes)
      .where(and(eq(oneTimeCodes.id, id), pendingIn(tx, teamId)))
      .returning();
    if (ended === undefined) {
      throw new SluiceError(
        "not-found",
        "This invitation was accepted or is over. Reload the page to see those that wait.",
      );
    }
    const detail = { email: ended.email, role: ended.role };
    await audit(tx, { action: "user.revoke-invitation", subject: id, teamId, detail });
    await notify(tx.db, "people", id);
    return await listInvitations(tx, { teamId });
  });
}
