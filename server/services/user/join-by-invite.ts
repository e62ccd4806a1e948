import { peekCode, useCode } from "#server/auth/one-time-code.ts";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { type JoinByInviteInput, type JoinByInviteOutput, joinByInviteInput } from "#server/contracts/user.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { inviteNotValid } from "./accept-invite.ts";
import { joinInvited } from "./join-invited.ts";
import { refuseDeactivated } from "./locked.ts";

/** Adds the signed-in person to the team of an invitation. The invitation must be for the same e-mail. */
export async function joinByInvite(ctx: Context, raw: JoinByInviteInput): Promise<JoinByInviteOutput> {
  authorize(ctx.principal, "user.join-by-invite");
  const { code } = parse(joinByInviteInput, raw);
  const { principal } = ctx;
  if (principal.kind !== "user") throw new SluiceError("forbidden", "Only a person can join a team. Sign in first.");
  const found = await peekCode(ctx, "invite", code);
  if (found?.email == null || found.teamId === null) throw inviteNotValid();
  if (found.email !== principal.email) {
    const who = `This invitation is for ${found.email}; you are signed in as ${principal.email}.`;
    throw new SluiceError("conflict", `${who} Sign out, then open the link again.`);
  }
  const { teamId } = found;
  return await inTransaction(ctx, async (tx) => {
    const used = await useCode(tx, "invite", code);
    if (used === undefined) throw inviteNotValid();
    await refuseDeactivated(tx, principal.userId);
    const { userId, email, name, isAdmin } = principal;
    await joinInvited(tx, { userId, email, name, isAdmin }, used);
    return { teamId };
  });
}
