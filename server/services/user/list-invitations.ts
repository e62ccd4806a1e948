import { and, desc, eq, gt, isNull, type SQL } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type InvitationList, type ListInvitationsInput, listInvitationsInput } from "#server/contracts/user.ts";
import { oneTimeCodes } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";

/** Invitations into a team that were neither accepted nor are over, the newest first. Their links are not kept. */
export async function listInvitations(ctx: Context, raw: ListInvitationsInput): Promise<InvitationList> {
  const { teamId } = parse(listInvitationsInput, raw);
  authorize(ctx.principal, "user.invite", { teamId });
  const rows = await ctx.db
    .select()
    .from(oneTimeCodes)
    .where(pendingIn(ctx, teamId))
    .orderBy(desc(oneTimeCodes.createdAt), desc(oneTimeCodes.id));
  return {
    invitations: rows.map(({ id, email, role, createdAt, expiresAt }) => ({
      ...{ id, email: email ?? "", role: role ?? "member" },
      ...{ invitedAt: createdAt.toISOString(), expiresAt: expiresAt.toISOString() },
    })),
  };
}

/** Of one-time codes, the invitations into a team that can still be accepted. */
export const pendingIn = (ctx: Context, teamId: string): SQL | undefined =>
  and(
    eq(oneTimeCodes.kind, "invite"),
    eq(oneTimeCodes.teamId, teamId),
    isNull(oneTimeCodes.usedAt),
    gt(oneTimeCodes.expiresAt, ctx.now()),
  );
