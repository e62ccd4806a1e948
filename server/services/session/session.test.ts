import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hashPassword } from "#server/auth/password.ts";
import { principalFromCredential } from "#server/auth/principal-from-credential.ts";
import { principalFromHeaders } from "#server/auth/principal-from-request.ts";
import {
  accessTokens,
  auditEvents,
  gatewaySessions,
  memberships,
  signInFailures,
  users,
} from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { createLive, type LiveEvent } from "#server/live.ts";
import { create as createToken } from "#server/services/access-token/create.ts";
import { revoke } from "#server/services/access-token/revoke.ts";
import { createSession } from "#server/services/session/create.ts";
import { end } from "#server/services/session/end.ts";
import { list } from "#server/services/session/list.ts";
import { readSession } from "#server/services/session/read.ts";
import { signInWithOidc } from "#server/services/session/sign-in-with-oidc.ts";
import { signInWithPassword } from "#server/services/session/sign-in-with-password.ts";
import { makePerson, makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { stop } from "#server/services/workspace/stop.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error: { code?: string }) => error.code,
  );
const password = "correct horse";
async function withPassword(name: string): Promise<Person> {
  const person = await makePerson(test.db, { name });
  await test.db
    .update(users)
    .set({ passwordHash: await hashPassword(password) })
    .where(eq(users.id, person.id));
  return person;
}
const from = (address: string, email: string, given = password) => ({ email, password: given, address });

describe("a password", () => {
  it("lets its person in, whatever the case of the e-mail", async () => {
    const person = await withPassword("Rita");
    expect(await signInWithPassword(world.system, from("::1", person.email.toUpperCase()))).toMatchObject({
      userId: person.id,
    });
  });

  it("does not tell whether the e-mail or the password is wrong", async () => {
    const person = await withPassword("Nils");
    const messages = await Promise.all(
      [
        from("::1", person.email, "wrong horse"),
        from("::1", "nobody@example.org"),
        from("::1", world.member.email),
      ].map((input) => signInWithPassword(world.system, input).catch((error: Error) => error.message)),
    );
    expect(new Set(messages).size).toBe(1);
  });

  it("may be wrong five times from one address in a quarter of an hour", async () => {
    await test.db.delete(signInFailures);
    const person = await withPassword("Olga");
    for (let i = 0; i < 5; i++) {
      expect(await code(signInWithPassword(world.system, from("10.0.0.1", person.email, "wrong")))).toBe(
        "unauthenticated",
      );
    }
    expect(await code(signInWithPassword(world.system, from("10.0.0.1", person.email)))).toBe("refused");
    expect(await code(signInWithPassword(world.system, from("10.0.0.2", person.email)))).toBe("done");
    const later = { ...world.system, now: () => new Date(Date.now() + 16 * 60_000) };
    expect(await code(signInWithPassword(later, from("10.0.0.1", person.email)))).toBe("done");
    expect(await test.db.select().from(signInFailures)).toEqual([]);
  });

  it("may be wrong twenty times from anywhere, also when all are tried at once", async () => {
    const person = await withPassword("Pia");
    const tries = Array.from({ length: 30 }, (_, i) =>
      code(signInWithPassword(world.system, from(`10.1.0.${i}`, person.email, "wrong"))),
    );
    const results = await Promise.all(tries);
    expect(results.filter((result) => result === "unauthenticated")).toHaveLength(20);
    expect(results.filter((result) => result === "refused")).toHaveLength(10);
  });

  it("that is right lets its person in where they signed in before, however many others guess", async () => {
    const person = await withPassword("Rosa");
    await createSession(world.system, { userId: person.id, by: "password", address: "10.2.9.1" });
    for (let i = 0; i < 21; i++) {
      await code(signInWithPassword(world.system, from(`10.2.0.${i}`, person.email, "wrong")));
    }
    expect(await code(signInWithPassword(world.system, from("10.2.9.2", person.email)))).toBe("refused");
    for (let i = 0; i < 4; i++) {
      const guess = from("10.2.9.1", person.email, "wrong");
      expect(await code(signInWithPassword(world.system, guess))).toBe("unauthenticated");
    }
    expect(await code(signInWithPassword(world.system, from("10.2.9.1", person.email)))).toBe("done");
    for (let i = 0; i < 5; i++) {
      await code(signInWithPassword(world.system, from("10.2.9.1", person.email, "wrong")));
    }
    expect(await code(signInWithPassword(world.system, from("10.2.9.1", person.email)))).toBe("refused");
  });

  it("is of no use to somebody who was disabled", async () => {
    const person = await withPassword("Quin");
    await test.db.update(users).set({ disabledAt: new Date() }).where(eq(users.id, person.id));
    expect(await code(signInWithPassword(world.system, from("::1", person.email)))).toBe("unauthenticated");
    expect(await principalFromHeaders(test.db, new Headers({ cookie: person.cookie }))).toEqual({ kind: "anonymous" });
  });
});

describe("an OIDC identity", () => {
  const issuer = "https://sso.example.org";
  it("is linked by a verified e-mail, and afterwards by its subject alone", async () => {
    const person = await makePerson(test.db, { name: "Sven" });
    const identity = { issuer, subject: "s1", email: person.email, emailVerified: false };
    expect(await code(signInWithOidc(world.system, identity))).toBe("forbidden");
    expect(await signInWithOidc(world.system, { ...identity, emailVerified: true })).toMatchObject({
      userId: person.id,
    });
    const moved = { issuer, subject: "s1", email: world.admin.email, emailVerified: true };
    expect(await signInWithOidc(world.system, moved)).toMatchObject({ userId: person.id });
    const thief = { issuer, subject: "s2", email: person.email, emailVerified: true };
    expect(await code(signInWithOidc(world.system, thief))).toBe("forbidden");
  });
});

describe("a provider that replaces another one", () => {
  const identity = (issuer: string, email: string) => ({ issuer, subject: "s9", email, emailVerified: true });
  it("links accounts of the replaced provider by the verified e-mail, except deactivated ones", async () => {
    const person = await makePerson(test.db, { name: "Thea" });
    const [before, now] = ["https://old_sso.example.org", "https://oldXsso.example.org"];
    await signInWithOidc(world.system, identity(before, person.email));
    expect(await signInWithOidc(world.system, identity(now, person.email))).toMatchObject({ userId: person.id });
    const [linked] = await test.db.select().from(users).where(eq(users.id, person.id));
    expect(linked?.oidcSubject).toBe(`${now}|s9`);
    // A link to the provider in use is an admin's to remove.
    const other = { ...identity(now, person.email), subject: "s10" };
    await expect(signInWithOidc(world.system, other)).rejects.toMatchObject({ reason: "other-subject" });
    await test.db.update(users).set({ disabledAt: new Date() }).where(eq(users.id, person.id));
    for (const issuer of [before, now]) {
      const refused = signInWithOidc(world.system, identity(issuer, person.email));
      await expect(refused).rejects.toMatchObject({ reason: "deactivated", userId: person.id });
    }
  });

  it.each([
    [{ email: undefined }, "no-email"],
    [{ email: "no address" }, "email-malformed"],
    [{ emailVerified: false }, "email-not-verified"],
    [{ emailVerified: undefined }, "email-not-said"],
  ])("is asked for a verified e-mail: %j", async (wrong, reason) => {
    const given = { ...identity("https://sso.example.org", "x@example.org"), ...wrong };
    await expect(signInWithOidc(world.system, given)).rejects.toMatchObject({ reason, code: "forbidden" });
  });
});

describe("a first sign-in by OIDC", () => {
  const issuer = "https://sso.example.org";
  it("ends every other way into the account, and a later one none", async () => {
    const person = await withPassword("Hugo");
    const { id: workspaceId } = await makeWorkspace(world, { owner: person });
    const { secret, token } = await createToken(person.ctx, { name: "planted" });
    await test.db.insert(gatewaySessions).values({
      id: newId("gws"),
      secretHash: newId("gws"),
      userId: person.id,
      workspaceId,
      sessionId: person.sessionId,
      expiresAt: new Date(Date.now() + 3_600_000),
    });
    const live = createLive(test.sql);
    const heard: LiveEvent[] = [];
    await live.ready();
    live.subscribe(["session"], (event) => heard.push(event));
    const identity = { issuer, subject: "hugo", email: person.email, emailVerified: true };
    await signInWithOidc(world.system, identity);

    expect(await code(signInWithPassword(world.system, from("::1", person.email)))).toBe("unauthenticated");
    const byCookie = new Headers({ cookie: person.cookie });
    const byToken = new Headers({ authorization: `Bearer ${secret}` });
    expect(await principalFromHeaders(test.db, byCookie)).toEqual({ kind: "anonymous" });
    expect(await principalFromHeaders(test.db, byToken)).toEqual({ kind: "anonymous" });
    const [opened] = await test.db.select().from(gatewaySessions).where(eq(gatewaySessions.userId, person.id));
    expect(opened?.revokedAt).toBeInstanceOf(Date);
    const ended = [person.sessionId, token.id].map((id) => ({ topic: "session", id }));
    await expect.poll(() => heard).toEqual(ended);
    await live.close();
    expect(await principalFromHeaders(test.db, new Headers({ cookie: world.member.cookie }))).toMatchObject({
      userId: world.member.id,
    });

    const { sessionId } = await createSession(world.system, { userId: person.id, by: "oidc" });
    await signInWithOidc(world.system, identity);
    expect(await readSession(world.system, sessionId)).toMatchObject({ userId: person.id });
  });
});

describe("a session", () => {
  const principal = (cookie: string) => principalFromHeaders(test.db, new Headers({ cookie }));

  it("is its person until it is ended, everywhere and with what the gateway opened", async () => {
    const person = await makePerson(test.db, { name: "Tom", teams: { [world.team]: "lead" } });
    expect(await principal(person.cookie)).toMatchObject({
      kind: "user",
      userId: person.id,
      teams: { [world.team]: "lead" },
    });
    const { id: workspaceId } = await makeWorkspace(world, { owner: person });
    await test.db.insert(gatewaySessions).values({
      id: newId("gws"),
      secretHash: newId("gws"),
      userId: person.id,
      workspaceId,
      sessionId: person.sessionId,
      expiresAt: new Date(Date.now() + 3_600_000),
    });
    expect(await code(end(world.member.ctx, { sessionId: person.sessionId }))).toBe("forbidden");
    await end(person.ctx, { sessionId: person.sessionId });
    expect(await principal(person.cookie)).toEqual({ kind: "anonymous" });
    const [opened] = await test.db
      .select()
      .from(gatewaySessions)
      .where(eq(gatewaySessions.sessionId, person.sessionId));
    expect(opened?.revokedAt).toBeInstanceOf(Date);
  });

  it("stands in its person's list with where it was opened and when it was used, until it is ended", async () => {
    const person = await makePerson(test.db, { name: "Iva" });
    const options = { userAgent: "Firefox/145.0", address: "192.0.2.7", by: "password" as const };
    const other = await createSession(world.system, { userId: person.id, ...options });
    const mine = async () => (await list(person.ctx)).sessions.map(({ id, current }) => [id, current]);
    expect(await mine()).toEqual([
      [other.sessionId, false],
      [person.sessionId, true],
    ]);
    const later = new Date(Date.now() + 120_000);
    await principalFromHeaders(test.db, new Headers({ cookie: person.cookie }), { now: () => later });
    const [first, second] = (await list(person.ctx)).sessions;
    expect(first).toMatchObject({ id: person.sessionId, lastSeenAt: later.toISOString() });
    expect(second).toMatchObject({ userAgent: "Firefox/145.0", address: "192.0.2.7", openedByAdmin: false });
    expect(await code(end(world.member.ctx, { sessionId: other.sessionId }))).toBe("forbidden");
    await end(person.ctx, { sessionId: other.sessionId });
    expect(await mine()).toEqual([[person.sessionId, true]]);
  });

  it("notes the look that its browser shows, which a request without the cookie leaves as it is", async () => {
    const person = await makePerson(test.db, { name: "Ola" });
    const noted = async (more: string) => {
      await principal(`${person.cookie}${more}`);
      return (await readSession(world.system, person.sessionId))?.theme;
    };
    expect(await noted("")).toBeNull();
    expect(await noted("; sluice-theme=dark")).toBe("dark");
    expect(await noted("")).toBe("dark");
    expect(await noted("; sluice-theme=light")).toBe("light");
    expect(await noted("; sluice-theme=%00")).toBe("system");
  });

  it("ends by itself after a week", async () => {
    const now = () => new Date(Date.now() + 8 * 86_400_000);
    const headers = new Headers({ cookie: world.member.cookie });
    expect(await principalFromHeaders(test.db, headers, { now })).toEqual({ kind: "anonymous" });
  });

  it("cannot be forged or bent", async () => {
    const bent = `${world.admin.cookie.slice(0, -3)}AAA`;
    expect(await principal(bent)).toEqual({ kind: "anonymous" });
    expect(await principal("__Host-sluice-session=nothing")).toEqual({ kind: "anonymous" });
  });
});

describe("a token", () => {
  const bearer = (secret: string) => new Headers({ authorization: `Bearer ${secret}` });

  it("acts as its person, is kept as a hash, and ends when revoked", async () => {
    const { token, secret } = await createToken(world.member.ctx, { name: "ci", days: 30 });
    expect(await principalFromHeaders(test.db, bearer(secret))).toMatchObject({
      userId: world.member.id,
      tokenId: token.id,
    });
    const [row] = await test.db.select().from(accessTokens).where(eq(accessTokens.id, token.id));
    expect(JSON.stringify(row)).not.toContain(secret);
    expect(row?.lastUsedAt).toBeInstanceOf(Date);
    expect(await code(revoke(world.colleague.ctx, { id: token.id }))).toBe("not-found");
    await revoke(world.member.ctx, { id: token.id });
    expect(await principalFromHeaders(test.db, bearer(secret))).toEqual({ kind: "anonymous" });
  });

  it("ends at its time", async () => {
    const { secret } = await createToken(world.member.ctx, { name: "short", days: 1 });
    const now = () => new Date(Date.now() + 2 * 86_400_000);
    expect(await principalFromHeaders(test.db, bearer(secret), { now })).toEqual({ kind: "anonymous" });
  });

  it("that is wrong is not made good by a cookie beside it", async () => {
    const headers = new Headers({ authorization: "Bearer slp_wrong", cookie: world.admin.cookie });
    expect(await principalFromHeaders(test.db, headers)).toEqual({ kind: "anonymous" });
  });

  it("never shows in the audit", async () => {
    const { secret } = await createToken(world.member.ctx, { name: "audited" });
    expect(JSON.stringify(await test.db.select().from(auditEvents))).not.toContain(secret);
  });
});

it("takes a workspace's credential at the broker's door only, and only while the workspace is wanted", async () => {
  const { id, credential } = await makeWorkspace(world, { owner: world.member });
  const authorization = `Bearer ${credential}`;
  expect(await principalFromCredential(test.db, authorization)).toEqual({
    kind: "workspace",
    workspaceId: id,
    teamId: world.team,
    userId: world.member.id,
  });
  expect(await principalFromHeaders(test.db, new Headers({ authorization }))).toEqual({ kind: "anonymous" });
  await stop(world.member.ctx, { id });
  expect(await principalFromCredential(test.db, authorization)).toEqual({ kind: "anonymous" });
});

it("takes no credential of a workspace whose owner left the team or was disabled", async () => {
  const person = await makePerson(test.db, { name: "Wim", teams: { [world.team]: "member" } });
  const { credential } = await makeWorkspace(world, { owner: person });
  const kind = async () => (await principalFromCredential(test.db, `Bearer ${credential}`)).kind;
  expect(await kind()).toBe("workspace");
  await test.db.update(users).set({ disabledAt: new Date() }).where(eq(users.id, person.id));
  expect(await kind()).toBe("anonymous");
  await test.db.update(users).set({ disabledAt: null }).where(eq(users.id, person.id));
  expect(await kind()).toBe("workspace");
  await test.db.update(memberships).set({ teamId: world.otherTeam }).where(eq(memberships.userId, person.id));
  expect(await kind()).toBe("anonymous");
});
