/** Joins existing accounts to the teams of their invitations. */
import { and, eq, gt, inArray, isNull } from "drizzle-orm";
import type { OneTimeCode } from "#server/auth/one-time-code.ts";
import type { UserPrincipal } from "#server/auth/principal.ts";
import { audit, type Context } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { memberships, oneTimeCodes, teams } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";

type Tx = Context & { db: Transaction };
type Person = Pick<UserPrincipal, "userId" | "email" | "name" | "isAdmin">;
/** An invitation that was used up just now. */
type Used = Pick<OneTimeCode, "teamId" | "role">;

/** Adds a person to the team. A member keeps the higher role. Ends other invitations into that team. */
export async function joinInvited(tx: Tx, person: Person, { teamId, role }: Used): Promise<void> {
  if (teamId === null) throw new Error("an invitation is into a team");
  const { userId } = person;
  const membership = and(eq(memberships.teamId, teamId), eq(memberships.userId, userId));
  const [before] = await tx.db.select().from(memberships).where(membership).for("update");
  const given = before?.role === "lead" ? "lead" : (role ?? "member");
  await tx.db
    .insert(memberships)
    .values({ teamId, userId, role: given, createdAt: tx.now() })
    .onConflictDoUpdate({
      target: [memberships.teamId, memberships.userId],
      set: { role: given, byGroup: false, version: (before?.version ?? 0) + 1 },
    });
  await endInvitations(tx, { teamId, email: person.email });
  await audit(
    { ...tx, principal: { kind: "user", ...person, teams: { [teamId]: given } } },
    {
      action: "user.accept-invite",
      subject: userId,
      teamId,
      detail: { role: given, ...(before && { before: { role: before.role } }) },
    },
  );
  await notify(tx.db, "people", userId);
}

/** Ends the invitations of an e-mail into a team. */
export async function endInvitations(tx: Tx, { teamId, email }: { teamId: string; email: string }): Promise<void> {
  await tx.db.delete(oneTimeCodes).where(and(waitingFor(tx, email), eq(oneTimeCodes.teamId, teamId)));
}

/** Invitations of an e-mail that can still be accepted. */
export const waitingFor = (ctx: Context, email: string) =>
  and(
    eq(oneTimeCodes.kind, "invite"),
    eq(oneTimeCodes.email, email),
    isNull(oneTimeCodes.usedAt),
    gt(oneTimeCodes.expiresAt, ctx.now()),
  );

/** Uses every open invitation of a person with a proved e-mail. Invitations into archived teams have no effect. */
export async function joinAllInvited(tx: Tx, person: Person): Promise<void> {
  const used = await tx.db
    .update(oneTimeCodes)
    .set({ usedAt: tx.now() })
    .where(
      and(
        waitingFor(tx, person.email),
        inArray(oneTimeCodes.teamId, tx.db.select({ id: teams.id }).from(teams).where(isNull(teams.archivedAt))),
      ),
    )
    .returning();
  for (const code of used) await joinInvited(tx, person, code);
}
