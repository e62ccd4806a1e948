import { eq } from "drizzle-orm";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createCode } from "#server/auth/one-time-code.ts";
import { anonymous } from "#server/auth/principal.ts";
import { type Context, systemContext } from "#server/context.ts";
import { localImageSpec } from "#server/contracts/image.ts";
import { images, imageVersions, memberships, quotas, teams, users } from "#server/db/schema/index.ts";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { signInWithOidc } from "#server/services/session/sign-in-with-oidc.ts";
import { signInWithPassword } from "#server/services/session/sign-in-with-password.ts";
import { complete } from "#server/services/setup/complete.ts";
import { prepare } from "#server/services/setup/prepare.ts";
import { status } from "#server/services/setup/status.ts";
import { write } from "#server/services/setup-step/write.ts";
import { redeemPasswordLink } from "#server/services/user/redeem-password-link.ts";

let test: TestDatabase;
let system: Context;
let nobody: Context;
beforeAll(async () => {
  test = await createTestDatabase();
  system = systemContext(test.db);
  nobody = { ...system, principal: anonymous };
});
beforeEach(() => resetTestDatabase(test));
afterAll(() => test.drop());
afterEach(() => {
  delete process.env.SLUICE_ADMIN_EMAIL;
  delete process.env.SLUICE_ADMIN_PASSWORD;
  delete process.env.SLUICE_PASSWORD_LINK_FOR;
  delete process.env.SLUICE_OIDC_ISSUER;
  resetEnv();
});

const form = { name: "Ada", email: "Ada@Example.org", password: "correct horse" };
const linkCode = async () => {
  const prepared = await prepare(system);
  if (prepared.state !== "link") throw new Error("There is no set-up link.");
  return new URL(prepared.link).searchParams.get("code") ?? "";
};

describe("the one form", () => {
  it("makes the admin, the team demo with its quota, and the catalogue", async () => {
    expect(await status(nobody)).toMatchObject({ done: false });
    const made = await complete(nobody, { ...form, code: await linkCode() });
    const [user] = await test.db.select().from(users);
    expect(user).toMatchObject({ id: made.userId, email: "ada@example.org", isAdmin: true });
    expect(user?.passwordHash).toMatch(/^\$argon2id\$/);
    expect(await test.db.select().from(teams)).toMatchObject([{ id: made.teamId, name: "demo" }]);
    expect(await test.db.select().from(memberships)).toMatchObject([{ userId: made.userId, role: "lead" }]);
    expect(await test.db.select().from(quotas)).toMatchObject([
      { gpuType: "soft", guaranteedMilli: 500, limitMilli: 1000 },
    ]);
    const catalogue = await test.db.select().from(images).orderBy(images.name);
    expect(catalogue).toMatchObject(["cuda-python", "cupy", "jax", "minimal", "pytorch"].map((name) => ({ name })));
    expect(await status(nobody)).toMatchObject({ done: true });
  });

  it("is done once, however many try at the same time", async () => {
    const code = await linkCode();
    const tries = Array.from({ length: 6 }, (_, i) =>
      complete(nobody, { ...form, email: `a${i}@example.org`, code }).then(
        () => "done",
        (error: { code: string }) => error.code,
      ),
    );
    expect((await Promise.all(tries)).sort()).toEqual([
      "conflict",
      "conflict",
      "conflict",
      "conflict",
      "conflict",
      "done",
    ]);
    await expect(complete(nobody, { ...form, code: await other() })).rejects.toMatchObject({ code: "conflict" });
  });
  const other = async () => (await createCode(system, "setup", 60)).code;

  it("refuses a code that is wrong or too old, and changes nothing", async () => {
    const code = await linkCode();
    await expect(complete(nobody, { ...form, code: "x".repeat(43) })).rejects.toMatchObject({ code: "forbidden" });
    const tomorrow = { ...nobody, now: () => new Date(Date.now() + 25 * 3_600_000) };
    await expect(complete(tomorrow, { ...form, code })).rejects.toMatchObject({ code: "forbidden" });
    await expect(complete(nobody, { ...form, password: "short", code })).rejects.toMatchObject({ code: "invalid" });
    expect(await test.db.select().from(users)).toEqual([]);
    await complete(nobody, { ...form, code });
  });
});

describe("unattended", () => {
  it("makes the admin of the environment, once", async () => {
    process.env.SLUICE_ADMIN_EMAIL = "ops@example.org";
    process.env.SLUICE_ADMIN_PASSWORD = "correct horse";
    resetEnv();
    expect(await prepare(system)).toEqual({ state: "done", made: true });
    expect(await prepare(system)).toEqual({ state: "done", made: false });
    expect(await test.db.select().from(users)).toMatchObject([{ email: "ops@example.org", isAdmin: true }]);
  });

  it("lets an admin who forgot the password back in, where nobody else could", async () => {
    await complete(nobody, { ...form, code: await linkCode() });
    process.env.SLUICE_PASSWORD_LINK_FOR = "Ada@Example.org";
    resetEnv();
    const prepared = await prepare(system);
    if (prepared.state !== "done") throw new Error("There is an admin.");
    const code = prepared.passwordLink?.link.split("/").at(-1) ?? "";
    expect(await redeemPasswordLink(nobody, { code, password: "better horse" })).toEqual({ email: "ada@example.org" });
    process.env.SLUICE_PASSWORD_LINK_FOR = "nobody@example.org";
    resetEnv();
    await expect(prepare(system)).rejects.toThrow("nobody here has the e-mail nobody@example.org");
  });

  it("lets the only admin back in after the provider changes their subject", async () => {
    const issuer = "https://sso.example.org";
    process.env.SLUICE_OIDC_ISSUER = issuer;
    resetEnv();
    const { userId } = await complete(nobody, { ...form, code: await linkCode() });
    const ada = (subject: string) => ({ issuer, subject, email: form.email, emailVerified: true });
    await signInWithOidc(system, ada("before"));
    await expect(signInWithOidc(system, ada("after"))).rejects.toThrow(/another subject.*SLUICE_PASSWORD_LINK_FOR/);
    process.env.SLUICE_PASSWORD_LINK_FOR = form.email;
    resetEnv();
    const prepared = await prepare(system);
    if (prepared.state !== "done") throw new Error("There is an admin.");
    const code = prepared.passwordLink?.link.split("/").at(-1) ?? "";
    await redeemPasswordLink(nobody, { code, password: "better horse" });
    const byPassword = { email: form.email, password: "better horse", address: "::1" };
    expect(await signInWithPassword(system, byPassword)).toMatchObject({ userId });
    expect(await signInWithOidc(system, ada("after"))).toMatchObject({ userId });
    await expect(signInWithPassword(system, byPassword)).rejects.toMatchObject({ code: "unauthenticated" });
  });

  it("wants both variables", async () => {
    process.env.SLUICE_ADMIN_EMAIL = "ops@example.org";
    resetEnv();
    await expect(prepare(system)).rejects.toMatchObject({ code: "invalid" });
  });
});

it("registers a definition once, and a changed one as a new version", async () => {
  await prepare(system);
  await prepare(system);
  const versions = await test.db.select().from(imageVersions);
  const folders = versions.map(({ spec }) => localImageSpec.parse(spec).folder).sort();
  expect(folders).toEqual(
    ["cuda-python", "cupy", "jax", "minimal", "pytorch"].map((name) => `server/environments/${name}`),
  );
  expect(new Set(versions.map(({ state }) => state))).toEqual(new Set(["approved"]));
});

it("shows the steps of start-up to everybody until there is an admin, then to people who signed in", async () => {
  await write(system, { id: "portal", title: "Build the portal", state: "running" });
  await write(system, { id: "portal", title: "Build the portal", state: "done" });
  const [step] = (await status(nobody)).steps;
  expect(step).toMatchObject({ id: "portal", state: "done" });
  expect(Date.parse(step?.finishedAt ?? "")).toBeGreaterThanOrEqual(Date.parse(step?.startedAt ?? ""));
  await complete(nobody, { ...form, code: await linkCode() });
  expect((await status(nobody)).steps).toEqual([]);
  await expect(write(nobody, { id: "portal", title: "x", state: "done" })).rejects.toMatchObject({
    code: "unauthenticated",
  });
});

it("keeps the e-mail unique whatever its case", async () => {
  await complete(nobody, { ...form, code: await linkCode() });
  const [user] = await test.db.select().from(users).where(eq(users.email, "ada@example.org"));
  expect(user).toBeDefined();
});
