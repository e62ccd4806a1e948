/** What a person's groups at the identity provider give them here, brought up to date. */
import { and, eq, inArray } from "drizzle-orm";
import { audit, type Context } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { identityGroups, memberships, users } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { giveUpOfPerson } from "#server/services/reservation/give-up.ts";
import { endOpened } from "#server/services/session/end-ways-in.ts";
import { stopOfPerson } from "#server/services/workspace/stop-of-person.ts";

type Tx = Context & { db: Transaction };
type Given = typeof identityGroups.$inferSelect;

/** What these groups give. A slash before a name does not count: Keycloak writes the group `ds` as the path `/ds`. */
export async function givenBy(tx: Tx, groups: readonly string[]): Promise<Given[]> {
  const names = [
    ...new Set(groups.flatMap((group) => [group, group.normalize()]).map((group) => group.replace(/^\//, ""))),
  ];
  if (names.length === 0) return [];
  return await tx.db
    .select()
    .from(identityGroups)
    .where(inArray(identityGroups.name, [...names, ...names.map((name) => `/${name}`)]));
}

/**
 * Puts somebody into the teams of their groups and out of those whose groups they have left; makes them an admin, or
 * takes that back. What was given by hand stays as it is. A provider that says nothing of groups changes nothing.
 */
export async function applyGroups(tx: Tx, userId: string, groups: readonly string[] | undefined): Promise<void> {
  if (groups === undefined) return;
  // In the order of `lockOther`: two sign-ins of one person at once do the same once.
  const admins = await tx.db.select().from(users).where(eq(users.isAdmin, true)).orderBy(users.id).for("no key update");
  const [user] = await tx.db.select().from(users).where(eq(users.id, userId)).for("no key update");
  if (user === undefined) return;
  const given = await givenBy(tx, groups);
  await joinAndLeave(tx, userId, given);
  const asAdmin = given.find(({ role }) => role === "admin");
  if (asAdmin !== undefined && !user.isAdmin) await setAdmin(tx, userId, true, asAdmin.name);
  // The last admin stays one: nobody could change anything here.
  const others = admins.some(({ id, disabledAt }) => id !== userId && disabledAt === null);
  if (asAdmin === undefined && user.isAdmin && user.adminByGroup && others) await setAdmin(tx, userId, false);
}

async function joinAndLeave(tx: Tx, userId: string, given: readonly Given[]): Promise<void> {
  const before = await tx.db.select().from(memberships).where(eq(memberships.userId, userId));
  for (const [teamId, { role, name }] of strongest(given)) {
    const now = before.find((each) => each.teamId === teamId);
    if (now !== undefined && (!now.byGroup || now.role === role)) continue;
    await tx.db
      .insert(memberships)
      .values({ teamId, userId, role, byGroup: true, createdAt: tx.now() })
      .onConflictDoUpdate({
        target: [memberships.teamId, memberships.userId],
        set: { role, version: (now?.version ?? 0) + 1 },
      });
    const detail = { role, group: name, before: now === undefined ? null : { role: now.role } };
    await audit(tx, { action: "team.add-member", subject: userId, teamId, detail });
    await notify(tx.db, "people", userId);
  }
  for (const { teamId, role, byGroup } of before) {
    if (!byGroup || given.some((each) => each.teamId === teamId)) continue;
    await giveUpOfPerson(tx, { userId, teamId });
    await tx.db.delete(memberships).where(and(eq(memberships.teamId, teamId), eq(memberships.userId, userId)));
    const detail = { before: { role }, by: "group left" };
    await audit(tx, { action: "team.remove-member", subject: userId, teamId, detail });
    await notify(tx.db, "people", userId);
    await stopOfPerson(tx, { userId, teamId });
  }
}

/** Of two groups that give a role in one team, the lead's counts. */
function strongest(given: readonly Given[]): Map<string, { role: "lead" | "member"; name: string }> {
  const found = new Map<string, { role: "lead" | "member"; name: string }>();
  for (const { teamId, role, name } of given) {
    if (teamId === null || role === "admin" || found.get(teamId)?.role === "lead") continue;
    found.set(teamId, { role, name });
  }
  return found;
}

async function setAdmin(tx: Tx, userId: string, isAdmin: boolean, group?: string): Promise<void> {
  if (!isAdmin) await endOpened(tx, userId);
  await tx.db.update(users).set({ isAdmin, adminByGroup: isAdmin }).where(eq(users.id, userId));
  const detail = { before: { isAdmin: !isAdmin }, after: { isAdmin }, ...(group === undefined ? {} : { group }) };
  await audit(tx, { action: "user.set-admin", subject: userId, detail });
  await notify(tx.db, "people", userId);
}
