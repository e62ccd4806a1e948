/** The way back in for whoever forgot the password. */
import { and, eq, isNull } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { hashPassword } from "#server/auth/password.ts";
import { anonymous } from "#server/auth/principal.ts";
import { principalFromHeaders } from "#server/auth/principal-from-request.ts";
import { auditEvents, gatewaySessions, notices, oneTimeCodes, sessions, users } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { newId } from "#server/ids.ts";
import { create as createToken } from "#server/services/access-token/create.ts";
import { signInWithOidc } from "#server/services/session/sign-in-with-oidc.ts";
import { signInWithPassword } from "#server/services/session/sign-in-with-password.ts";
import { makePerson, makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { createPasswordLink } from "./create-password-link.ts";
import { deactivate, reactivate } from "./deactivate.ts";
import { list } from "./list.ts";
import { readPasswordLink } from "./read-password-link.ts";
import { redeemPasswordLink } from "./redeem-password-link.ts";

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
  await test.db
    .update(users)
    .set({ passwordHash: await hashPassword("forgotten horse") })
    .where(eq(users.id, person.id));
});

/** Somebody who is not signed in, at an address of their own. */
const stranger = (address: string) => ({ ...world.system, principal: anonymous, address });
const nobody = () => stranger("192.0.2.1");
const make = async () => {
  const { link } = await createPasswordLink(world.admin.ctx, { id: person.id });
  return link.split("/").at(-1) ?? "";
};
const signIn = (password: string) =>
  signInWithPassword(world.system, { email: person.email, password, address: "192.0.2.1" });
const isSignedIn = async (cookie: string) =>
  (await principalFromHeaders(test.db, new Headers({ cookie }))).kind === "user";
const hasToken = async (secret: string) =>
  (await principalFromHeaders(test.db, new Headers({ authorization: `Bearer ${secret}` }))).kind === "user";

it("gives a new password once, and ends every browser session, but neither tokens nor other people's", async () => {
  const { secret } = await createToken(person.ctx, { name: "nightly" });
  const { id: workspaceId } = await makeWorkspace(world, { owner: person });
  await test.db.insert(gatewaySessions).values({
    ...{ id: newId("gws"), secretHash: newId("gws"), userId: person.id, workspaceId, sessionId: person.sessionId },
    expiresAt: new Date(Date.now() + 3_600_000),
  });
  const code = await make();
  // Until it is used, nothing has changed.
  expect(await readPasswordLink(nobody(), { code })).toEqual({ email: person.email, name: "Rita" });
  expect(await signIn("forgotten horse")).toMatchObject({ userId: person.id });
  expect(await isSignedIn(person.cookie)).toBe(true);

  const both = await Promise.allSettled(
    ["better horse", "better horse"].map((password) => redeemPasswordLink(nobody(), { code, password })),
  );
  expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  await expect(readPasswordLink(nobody(), { code })).rejects.toMatchObject({ code: "not-found" });

  await expect(signIn("forgotten horse")).rejects.toMatchObject({ code: "unauthenticated" });
  expect(await signIn("better horse")).toMatchObject({ userId: person.id });
  expect(await isSignedIn(person.cookie)).toBe(false);
  const open = and(eq(gatewaySessions.userId, person.id), isNull(gatewaySessions.revokedAt));
  expect(await test.db.$count(gatewaySessions, open)).toBe(0);
  expect(await hasToken(secret)).toBe(true);
  expect(await isSignedIn(world.member.cookie)).toBe(true);

  const events = await test.db.select().from(auditEvents).where(eq(auditEvents.subject, person.id));
  const about = events.filter(({ action }) => action.endsWith("password-link"));
  expect(about).toMatchObject([
    { action: "user.create-password-link", actorId: world.admin.id },
    { action: "user.redeem-password-link", actorId: person.id, address: "192.0.2.1", detail: { revokedTokens: false } },
  ]);
  const told = await test.db.select().from(notices).where(eq(notices.userId, person.id));
  expect(told).toMatchObject([{ kind: "password", title: "Your password was set anew by a link" }]);
  expect(JSON.stringify([events, told])).not.toContain(code);
  expect(JSON.stringify(await test.db.select().from(oneTimeCodes))).not.toContain(code);
});

it("ends access tokens, and windows that were opened as the sample user, where that is asked for", async () => {
  const { secret } = await createToken(person.ctx, { name: "nightly" });
  const opened = newId("ses");
  await test.db.insert(sessions).values({
    ...{ id: opened, userId: world.colleague.id, openedBy: person.id },
    expiresAt: new Date(Date.now() + 3_600_000),
  });
  await redeemPasswordLink(nobody(), { code: await make(), password: "better horse", revokeTokens: true });
  expect(await hasToken(secret)).toBe(false);
  const [row] = await test.db.select().from(sessions).where(eq(sessions.id, opened));
  expect(row?.revokedAt).toBeInstanceOf(Date);
});

it("opens nothing after a day, after a newer link, or once the account was closed", async () => {
  const old = await make();
  const later = { ...nobody(), now: () => new Date(Date.now() + 25 * 3_600_000) };
  await expect(readPasswordLink(later, { code: old })).rejects.toMatchObject({ code: "not-found" });
  const newer = await make();
  await expect(redeemPasswordLink(nobody(), { code: old, password: "better horse" })).rejects.toMatchObject({
    code: "not-found",
  });
  expect(await readPasswordLink(nobody(), { code: newer })).toMatchObject({ email: person.email });
  await deactivate(world.admin.ctx, { id: person.id });
  await expect(make()).rejects.toThrow("Reactivate it first");
  await reactivate(world.admin.ctx, { id: person.id });
  await expect(redeemPasswordLink(nobody(), { code: newer, password: "better horse" })).rejects.toMatchObject({
    code: "not-found",
  });
});

it("lets somebody in who had tried too often before", async () => {
  for (let tries = 0; tries < 5; tries++) await signIn("which horse").catch(() => undefined);
  await expect(signIn("forgotten horse")).rejects.toMatchObject({ code: "refused" });
  await redeemPasswordLink(nobody(), { code: await make(), password: "better horse" });
  expect(await signIn("better horse")).toMatchObject({ userId: person.id });
});

it("is made by an admin in a browser for somebody else, and five times in a quarter of an hour", async () => {
  const { id } = person;
  await expect(createPasswordLink(world.lead.ctx, { id })).rejects.toMatchObject({ code: "forbidden" });
  await expect(createPasswordLink(world.admin.ctx, { id: world.admin.id })).rejects.toThrow("Ask another admin");
  const { principal } = world.admin.ctx;
  if (principal.kind !== "user") throw new Error("an admin is a person");
  const byToken = { ...world.admin.ctx, principal: { ...principal, sessionId: undefined } };
  await expect(createPasswordLink(byToken, { id })).rejects.toMatchObject({ code: "forbidden" });
  for (let made = 0; made < 5; made++) await make();
  await expect(make()).rejects.toThrow("Many links were made for this person just now. Try again in 15 min.");
  const later = { ...world.admin.ctx, now: () => new Date(Date.now() + 16 * 60_000) };
  expect((await createPasswordLink(later, { id })).link).toContain("/password/");
});

it("is guessed from one address twenty times in a quarter of an hour, and elsewhere opens all the same", async () => {
  const code = await make();
  const guess = (n: number) => readPasswordLink(stranger("192.0.2.9"), { code: `${"a".repeat(40)}${100 + n}` });
  const outcomes = await Promise.allSettled(Array.from({ length: 25 }, (_, n) => guess(n)));
  const codes = outcomes.map((outcome) =>
    outcome.status === "rejected" ? (outcome.reason as { code: string }).code : "",
  );
  expect(codes.filter((each) => each === "not-found")).toHaveLength(20);
  expect(codes.filter((each) => each === "too-many")).toHaveLength(5);
  await expect(redeemPasswordLink(stranger("192.0.2.9"), { code, password: "better horse" })).rejects.toMatchObject({
    code: "too-many",
  });
  expect(await redeemPasswordLink(stranger("192.0.2.10"), { code, password: "better horse" })).toEqual({
    email: person.email,
  });
});

it("is not for whoever signs in through the provider, while there is one", async () => {
  const issuer = "https://sso.example.org";
  const code = await make();
  const before = process.env.SLUICE_OIDC_ISSUER;
  try {
    process.env.SLUICE_OIDC_ISSUER = issuer;
    resetEnv();
    await signInWithOidc(world.system, { issuer, subject: "rita", email: person.email, emailVerified: true });
    await expect(redeemPasswordLink(nobody(), { code, password: "better horse" })).rejects.toMatchObject({
      code: "not-found",
    });
    await expect(make()).rejects.toThrow(/signs in with SSO.*SLUICE_PASSWORD_LINK_FOR=/);
    const view = async () => (await list(world.admin.ctx, { search: person.email })).users[0];
    expect(await view()).toMatchObject({ byProvider: true });
    // Without the provider nobody could sign in to it any more.
    delete process.env.SLUICE_OIDC_ISSUER;
    resetEnv();
    expect(await view()).toMatchObject({ byProvider: false });
    await redeemPasswordLink(nobody(), { code: await make(), password: "better horse" });
    expect(await signIn("better horse")).toMatchObject({ userId: person.id });
  } finally {
    if (before === undefined) delete process.env.SLUICE_OIDC_ISSUER;
    else process.env.SLUICE_OIDC_ISSUER = before;
    resetEnv();
  }
});
