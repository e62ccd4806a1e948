import { eq } from "drizzle-orm";
import { peekCode } from "#server/auth/one-time-code.ts";
import { authorize, type Context } from "#server/context.ts";
import { type InviteView, type ReadInviteInput, readInviteInput } from "#server/contracts/user.ts";
import { teams, users } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { inviteNotValid } from "./accept-invite.ts";

/** Whom an invitation is for, without using it. */
export async function readInvite(ctx: Context, raw: ReadInviteInput): Promise<InviteView> {
  authorize(ctx.principal, "user.accept-invite");
  const { code } = parse(readInviteInput, raw);
  const found = await peekCode(ctx, "invite", code);
  const [team] =
    found?.teamId == null
      ? []
      : await ctx.db.select({ name: teams.name }).from(teams).where(eq(teams.id, found.teamId));
  if (found === undefined || found.email === null || team === undefined) {
    throw inviteNotValid();
  }
  const { email, role } = found;
  const hasAccount = (await ctx.db.$count(users, eq(users.email, email))) > 0;
  return { email, teamName: team.name, role: role ?? "member", hasAccount };
}
