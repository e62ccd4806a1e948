/** Invitations of one person into several teams, and of a person with a deactivated account. */
import { and, eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { loadUser } from "#server/auth/load-user.ts";
import { anonymous } from "#server/auth/principal.ts";
import type { Context } from "#server/context.ts";
import { auditEvents, memberships, users } from "#server/db/schema/index.ts";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { signInWithOidc } from "#server/services/session/sign-in-with-oidc.ts";
import { addMember } from "#server/services/team/add-member.ts";
import { archive } from "#server/services/team/archive.ts";
import { makeWorld, type Person, type World } from "#server/services/testing.ts";
import { acceptInvite } from "./accept-invite.ts";
import { deactivate } from "./deactivate.ts";
import { invite } from "./invite.ts";
import { joinByInvite } from "./join-by-invite.ts";
import { listInvitations } from "./list-invitations.ts";
import { readInvite } from "./read-invite.ts";

let test: TestDatabase;
let world: World;
let nobody: Context;
beforeAll(async () => {
  test = await createTestDatabase();
});
beforeEach(async () => {
  await resetTestDatabase(test);
  world = await makeWorld(test.db);
  nobody = { ...world.system, principal: anonymous };
});
afterAll(() => test.drop());

const EMAIL = "iris@example.org";

async function codeFor(by: Person, teamId: string, role: "lead" | "member" = "member", email = EMAIL): Promise<string> {
  const { link } = await invite(by.ctx, { email, teamId, role });
  return link.split("/").at(-1) ?? "";
}

/** The principal of the account that the first invitation made. */
async function iris(): Promise<{ ctx: Context; id: string; second: string }> {
  const first = await codeFor(world.lead, world.team);
  const second = await codeFor(world.outsider, world.otherTeam, "lead");
  const { userId: id } = await acceptInvite(nobody, { code: first, name: "Iris", password: "correct horse" });
  return { ctx: await signedIn(id), id, second };
}

async function signedIn(id: string): Promise<Context> {
  const principal = await loadUser(test.db, id);
  if (principal === undefined) throw new Error("there is no such person");
  return { ...world.system, principal: { ...principal, sessionId: newId("ses") } };
}

const teamsOf = async (id: string) => (await loadUser(test.db, id))?.teams;
const waiting = async (by: Person, teamId: string) => (await listInvitations(by.ctx, { teamId })).invitations.length;

describe("a second invitation of one person", () => {
  it("joins the second team once, with its role", async () => {
    const { ctx, id, second } = await iris();
    expect(await teamsOf(id)).toEqual({ [world.team]: "member" });
    expect(await readInvite(nobody, { code: second })).toMatchObject({ hasAccount: true });
    await expect(acceptInvite(nobody, { code: second, name: "I", password: "correct horse" })).rejects.toThrow(
      "Sign in, then open this link again.",
    );
    expect(await joinByInvite(ctx, { code: second })).toEqual({ teamId: world.otherTeam });
    expect(await teamsOf(id)).toEqual({ [world.team]: "member", [world.otherTeam]: "lead" });
    await expect(joinByInvite(ctx, { code: second })).rejects.toMatchObject({ code: "not-found" });
    expect(await waiting(world.outsider, world.otherTeam)).toBe(0);
    const audited = and(eq(auditEvents.action, "user.accept-invite"), eq(auditEvents.teamId, world.otherTeam));
    expect(await test.db.select().from(auditEvents).where(audited)).toMatchObject([{ actorId: id }]);
  });

  it("works for the invited person only", async () => {
    const { ctx, id, second } = await iris();
    for (const other of [world.member.ctx, world.admin.ctx]) {
      await expect(joinByInvite(other, { code: second })).rejects.toThrow(/This invitation is for iris@example.org/);
    }
    await expect(joinByInvite(nobody, { code: second })).rejects.toMatchObject({ code: "unauthenticated" });
    const byToken = await loadUser(test.db, id);
    if (byToken === undefined) throw new Error("there is no such person");
    const refused = joinByInvite({ ...world.system, principal: byToken }, { code: second });
    await expect(refused).rejects.toMatchObject({ code: "forbidden" });
    expect(await test.db.$count(memberships, eq(memberships.teamId, world.otherTeam))).toBe(1);
    expect((await joinByInvite(ctx, { code: second })).teamId).toBe(world.otherTeam);
  });

  it("is not accepted by the link of the first one, which does not prove the e-mail", async () => {
    const { id } = await iris();
    expect(await teamsOf(id)).toEqual({ [world.team]: "member" });
    expect(await waiting(world.outsider, world.otherTeam)).toBe(1);
  });

  it("ends when the person is added by hand, and lowers no role", async () => {
    const { ctx, id, second } = await iris();
    await addMember(world.outsider.ctx, { teamId: world.otherTeam, email: EMAIL, role: "member" });
    expect(await waiting(world.outsider, world.otherTeam)).toBe(0);
    await expect(joinByInvite(ctx, { code: second })).rejects.toMatchObject({ code: "not-found" });
    // Two links into one team, made before there was an account.
    const [asLead, asMember] = [
      await codeFor(world.lead, world.team, "lead", "jo@example.org"),
      await codeFor(world.lead, world.team, "member", "jo@example.org"),
    ];
    const jo = await acceptInvite(nobody, { code: asLead, name: "Jo", password: "correct horse" });
    expect(await readInvite(nobody, { code: asMember }).catch(({ code }: { code: string }) => code)).toBe("not-found");
    expect(await teamsOf(jo.userId)).toEqual({ [world.team]: "lead" });
    expect(await teamsOf(id)).toMatchObject({ [world.otherTeam]: "member" });
  });
});

describe("open invitations of a person with a verified e-mail", () => {
  const identity = { issuer: "https://sso.example.org", subject: "iris", email: "Iris@Example.org", name: "Iris" };

  it("make the account and join every team at the first sign-in", async () => {
    await codeFor(world.lead, world.team);
    await codeFor(world.outsider, world.otherTeam, "lead");
    await expect(signInWithOidc(world.system, { ...identity, emailVerified: false })).rejects.toMatchObject({
      reason: "email-not-verified",
    });
    const { userId } = await signInWithOidc(world.system, { ...identity, emailVerified: true });
    expect(await teamsOf(userId)).toEqual({ [world.team]: "member", [world.otherTeam]: "lead" });
    expect(await waiting(world.lead, world.team)).toBe(0);
  });

  it("are not joined for an account with a different e-mail than the provider's", async () => {
    await codeFor(world.lead, world.team);
    const { userId } = await signInWithOidc(world.system, { ...identity, emailVerified: true });
    await codeFor(world.outsider, world.otherTeam, "member", "other@example.org");
    await signInWithOidc(world.system, { ...identity, email: "other@example.org", emailVerified: true });
    expect(await teamsOf(userId)).toEqual({ [world.team]: "member" });
  });

  it("do not join an archived team", async () => {
    await codeFor(world.lead, world.team);
    await codeFor(world.outsider, world.otherTeam);
    await archive(world.admin.ctx, { id: world.otherTeam });
    const { userId } = await signInWithOidc(world.system, { ...identity, emailVerified: true });
    expect(await teamsOf(userId)).toEqual({ [world.team]: "member" });
  });
});

it("offers reactivation of the account to an admin, and refers a lead to an admin", async () => {
  const { id, email } = world.member;
  await deactivate(world.admin.ctx, { id });
  for (const teamId of [world.team, world.otherTeam]) {
    await expect(invite(world.admin.ctx, { email, teamId })).rejects.toMatchObject({
      code: "conflict",
      message: `email: ${email} is deactivated. Reactivate the account instead.`,
      detail: { deactivated: id },
    });
  }
  await expect(invite(world.lead.ctx, { email, teamId: world.team })).rejects.toMatchObject({
    message: `email: ${email} is deactivated. Ask an admin to reactivate the account.`,
    detail: undefined,
  });
  expect(await test.db.$count(users, eq(users.email, email))).toBe(1);
});
