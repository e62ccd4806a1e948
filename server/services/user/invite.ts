import { and, eq } from "drizzle-orm";
import { createCode } from "#server/auth/one-time-code.ts";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type InviteInput, type InviteOutput, inviteInput } from "#server/contracts/user.ts";
import { memberships, teams, users } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";

const INVITE_SECONDS = 7 * 24 * 3600;

/** Makes a link with which one person makes an account and joins the team. */
export async function invite(ctx: Context, raw: InviteInput): Promise<InviteOutput> {
  const input = parse(inviteInput, raw);
  authorize(ctx.principal, "user.invite", { teamId: input.teamId });
  return await inTransaction(ctx, async (tx) => {
    const [team] = await tx.db.select().from(teams).where(eq(teams.id, input.teamId));
    if (team === undefined) throw new SluiceError("not-found", "There is no such team.");
    const [known] = await tx.db.select().from(users).where(eq(users.email, input.email));
    if (known !== undefined) {
      if (known.disabledAt !== null) throw deactivated(tx, known);
      const there = and(eq(memberships.userId, known.id), eq(memberships.teamId, input.teamId));
      if ((await tx.db.$count(memberships, there)) > 0) {
        throw new SluiceError("invalid", `email: ${input.email} is in this team already.`);
      }
      const message = `email: ${input.email} has an account already. Add them to the team instead.`;
      // The form offers to add the account.
      throw new SluiceError("conflict", message, { mayAdd: true });
    }
    const { code, expiresAt } = await createCode(tx, "invite", INVITE_SECONDS, input);
    await audit(tx, {
      action: "user.invite",
      teamId: input.teamId,
      detail: { email: input.email, role: input.role },
    });
    return { link: `${env().SLUICE_PORTAL_URL}/invite/${code}`, expiresAt: expiresAt.toISOString() };
  });
}

/** A deactivated account is reactivated, not invited. Only admins get its id, because only they reactivate. */
function deactivated(ctx: Context, { id, email }: { id: string; email: string }): SluiceError {
  const isAdmin = ctx.principal.kind === "user" && ctx.principal.isAdmin;
  const next = isAdmin ? "Reactivate the account instead." : "Ask an admin to reactivate the account.";
  return new SluiceError(
    "conflict",
    `email: ${email} is deactivated. ${next}`,
    isAdmin ? { deactivated: id } : undefined,
  );
}
