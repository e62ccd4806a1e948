/** Whoever knows the current password chooses another, and is then signed in where they did it, and nowhere else. */
import { and, eq } from "drizzle-orm";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { hashPassword } from "#server/auth/password.ts";
import { principalFromHeaders } from "#server/auth/principal-from-request.ts";
import { auditEvents, notices, users } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { create as createToken } from "#server/services/access-token/create.ts";
import { createSession } from "#server/services/session/create.ts";
import { me } from "#server/services/session/me.ts";
import { readSession } from "#server/services/session/read.ts";
import { signInWithPassword } from "#server/services/session/sign-in-with-password.ts";
import { makePerson, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { changePassword } from "./change-password.ts";
import { createPasswordLink } from "./create-password-link.ts";
import { readPasswordLink } from "./read-password-link.ts";

const OLD = "correct horse";
const NEW = "better horse";
const HERE = "192.0.2.1";

let test: TestDatabase;
let world: World;
let person: Person;

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());
beforeEach(async () => {
  person = await makePerson(test.db, { name: "Rita" });
  const passwordHash = await hashPassword(OLD);
  await test.db.update(users).set({ passwordHash }).where(eq(users.id, person.id));
});
afterEach(() => {
  delete process.env.SLUICE_OIDC_ISSUER;
  resetEnv();
});

const here = () => ({ ...person.ctx, address: HERE });
const change = (currentPassword = OLD, password = NEW, revokeTokens = false) =>
  changePassword(here(), { currentPassword, password, revokeTokens });
const signIn = (password: string) => signInWithPassword(world.system, { email: person.email, password, address: HERE });
const lasts = async (sessionId: string) => (await readSession(world.system, sessionId)) !== undefined;
const hasToken = async (secret: string) =>
  (await principalFromHeaders(test.db, new Headers({ authorization: `Bearer ${secret}` }))).kind === "user";

it("ends every other session of theirs and links for a new password, but neither this session nor tokens", async () => {
  const other = await createSession(world.system, { userId: person.id, by: "password" });
  const { secret } = await createToken(person.ctx, { name: "nightly" });
  const { link } = await createPasswordLink(world.admin.ctx, { id: person.id });

  expect(await change()).toEqual({ endedSessions: 1 });
  await expect(signIn(OLD)).rejects.toMatchObject({ code: "unauthenticated" });
  expect(await signIn(NEW)).toMatchObject({ userId: person.id });
  expect(await lasts(person.sessionId)).toBe(true);
  expect(await lasts(other.sessionId)).toBe(false);
  expect(await lasts(world.member.sessionId)).toBe(true);
  expect(await hasToken(secret)).toBe(true);
  const code = link.split("/").at(-1) ?? "";
  await expect(readPasswordLink(world.system, { code })).rejects.toMatchObject({ code: "not-found" });
});

it("ends access tokens where that is asked for", async () => {
  const { secret } = await createToken(person.ctx, { name: "nightly" });
  await change(OLD, NEW, true);
  expect(await hasToken(secret)).toBe(false);
});

it("is told to the person, and stands in the audit without either password", async () => {
  await expect(change("which horse")).rejects.toThrow("currentPassword: This is not your current password.");
  await change();
  const told = await test.db.select().from(notices).where(eq(notices.userId, person.id));
  expect(told).toMatchObject([{ kind: "password", title: "Your password was changed", href: "/settings" }]);
  expect(told[0]?.body).toContain(`from ${HERE}`);
  const about = and(eq(auditEvents.subject, person.id), eq(auditEvents.actorId, person.id));
  const events = (await test.db.select().from(auditEvents).where(about)).filter(({ action }) =>
    /password/.test(action),
  );
  expect(events).toMatchObject([
    { action: "user.refuse-password-change", address: HERE },
    { action: "user.change-password", address: HERE, detail: { endedSessions: 0, revokedTokens: false } },
  ]);
  const [row] = await test.db.select().from(users).where(eq(users.id, person.id));
  for (const secret of [OLD, NEW, "which horse", row?.passwordHash ?? ""]) {
    expect(JSON.stringify([events, told])).not.toContain(secret);
  }
});

it("is guessed no faster than at sign-in, whose guesses count with these", async () => {
  for (let tries = 0; tries < 3; tries++)
    await expect(change("which horse")).rejects.toMatchObject({ code: "invalid" });
  for (let tries = 0; tries < 2; tries++) await signIn("which horse").catch(() => undefined);
  await expect(change()).rejects.toMatchObject({ code: "refused" });
  await expect(signIn(OLD)).rejects.toMatchObject({ code: "refused" });
  const later = { ...here(), now: () => new Date(Date.now() + 16 * 60_000) };
  expect(await changePassword(later, { currentPassword: OLD, password: NEW })).toEqual({ endedSessions: 0 });
});

it("is refused where the new one is the current one or too short, and takes no guess for that", async () => {
  for (let tries = 0; tries < 6; tries++) {
    await expect(change(OLD, OLD)).rejects.toThrow("password: This is your current password. Choose another.");
  }
  await expect(change(OLD, "short")).rejects.toThrow("at least 8 characters");
  expect(await signIn(OLD)).toMatchObject({ userId: person.id });
});

it("happens once of two at the same time, and ends the session of the other", async () => {
  const other = await createSession(world.system, { userId: person.id, by: "password" });
  const { principal } = person.ctx;
  if (principal.kind !== "user") throw new Error("Rita is a person");
  const there = { ...here(), principal: { ...principal, sessionId: other.sessionId } };
  const outcomes = await Promise.allSettled([
    change(OLD, "horse of here"),
    changePassword(there, { currentPassword: OLD, password: "horse of there" }),
  ]);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect([await lasts(person.sessionId), await lasts(other.sessionId)].sort()).toEqual([false, true]);
});

it("is for people who have a password here, in a browser", async () => {
  const { principal } = person.ctx;
  if (principal.kind !== "user") throw new Error("Rita is a person");
  const byToken = { ...here(), principal: { ...principal, sessionId: undefined } };
  await expect(changePassword(byToken, { currentPassword: OLD, password: NEW })).rejects.toMatchObject({
    code: "forbidden",
  });
  expect(await me(person.ctx)).toMatchObject({ hasPassword: true, byProvider: false });

  const of = eq(users.id, person.id);
  await test.db.update(users).set({ passwordHash: null }).where(of);
  await expect(change()).rejects.toThrow("Ask an admin for a link");
  await test.db.update(users).set({ isSample: true }).where(of);
  await expect(change()).rejects.toThrow("The sample user has no password");
  process.env.SLUICE_OIDC_ISSUER = "https://login.example.org";
  resetEnv();
  await test.db.update(users).set({ isSample: false, oidcSubject: "https://login.example.org|rita" }).where(of);
  await expect(change()).rejects.toThrow("You sign in with SSO and have no password here. Change it there.");
  expect(await me(person.ctx)).toMatchObject({ hasPassword: false, byProvider: true });
});
