/** Everything that hashes a password for somebody who is not signed in is counted by the client's network. */
import { eq } from "drizzle-orm";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createCode } from "#server/auth/one-time-code.ts";
import { hashPassword, passwordWork } from "#server/auth/password.ts";
import { anonymous } from "#server/auth/principal.ts";
import { type Context, systemContext } from "#server/context.ts";
import { signInFailures, users } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { SluiceError } from "#server/errors.ts";
import { createSession } from "#server/services/session/create.ts";
import { signInWithPassword } from "#server/services/session/sign-in-with-password.ts";
import { complete } from "#server/services/setup/complete.ts";
import { makePerson, makeWorld, type Person } from "#server/services/testing.ts";
import { acceptInvite } from "#server/services/user/accept-invite.ts";
import { redeemPasswordLink } from "#server/services/user/redeem-password-link.ts";

let test: TestDatabase;
let system: Context;
beforeEach(async () => {
  test = await createTestDatabase();
  system = systemContext(test.db);
});
afterEach(async () => await test.drop());

const PASSWORD = "correct horse";
async function withPassword(name: string): Promise<Person> {
  const person = await makePerson(test.db, { name });
  const passwordHash = await hashPassword(PASSWORD);
  await test.db.update(users).set({ passwordHash }).where(eq(users.id, person.id));
  return person;
}

async function code(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => "done",
    (error: unknown) => (error instanceof SluiceError ? error.code : String(error)),
  );
}

/** How many have an outcome by now. */
async function settled(works: readonly Promise<string>[]): Promise<number> {
  const outcomes = works.map(async (work) => await Promise.race([work, Promise.resolve("waits")]));
  return (await Promise.all(outcomes)).filter((outcome) => outcome !== "waits").length;
}

const wrong = "a".repeat(43);
const form = { code: wrong, name: "Eve", email: "eve@example.org", password: "correct horse" };
const invitation = { code: wrong, name: "Eve", password: "correct horse" };
const from = (address: string): Context => ({ ...system, principal: anonymous, address });

const ways: [what: string, use: (address: string) => Promise<unknown>][] = [
  ["set-up", async (address) => await complete(from(address), form)],
  ["an invitation", async (address) => await acceptInvite(from(address), invitation)],
  [
    "sign-in",
    async (address) => await signInWithPassword(system, { email: form.email, password: form.password, address }),
  ],
];

it.each(ways)(
  "lets one address try %s sixty times in a quarter of an hour, and others all the same",
  async (_, use) => {
    for (let tried = 0; tried < 60; tried++) {
      // With other e-mails: each has a limit of its own.
      await acceptInvite(from("10.0.0.1"), invitation).catch(() => undefined);
    }
    await expect(use("10.0.0.1")).rejects.toMatchObject({ code: "too-many" });
    await expect(use("10.0.0.2")).rejects.not.toMatchObject({ code: "too-many" });
  },
);

it("counts all addresses of one IPv6 /64 as one network", async () => {
  for (let tried = 0; tried < 60; tried++) {
    await acceptInvite(from(`2001:db8:1:2::${tried.toString(16)}`), invitation).catch(() => undefined);
  }
  const signIn = async (address: string) =>
    await signInWithPassword(system, { email: form.email, password: form.password, address });
  await expect(signIn("2001:db8:1:2:ffff::1")).rejects.toMatchObject({ code: "too-many" });
  await expect(signIn("2001:db8:1:3::1")).rejects.toMatchObject({ code: "unauthenticated" });
});

it("lets people sign in while one IPv6 /64 and fifty networks ask for passwords at once", async () => {
  const world = await makeWorld(test.db);
  const [known, fresh] = [await withPassword("Kim"), await withPassword("Finn")];
  const office = "2001:db8:a::7";
  await createSession(system, { userId: known.id, address: office, by: "password" });
  const tries = (address: (index: number) => string, count: number) =>
    Array.from({ length: count }, async (_, index) => {
      const guess = { email: `made-up-${address(index)}@example.org`.replaceAll(":", "-"), password: "x" };
      return await code(signInWithPassword(world.system, { ...guess, address: address(index) }));
    });
  const held = Promise.withResolvers<void>();
  const blocked = [0, 1].map(() => passwordWork().run(async () => await held.promise));
  const wait = { timeout: 60_000 };
  const oneNetwork = tries((index) => `2001:db8:1:2::${index.toString(16)}`, 50);
  await expect.poll(() => settled(oneNetwork), wait).toBe(46);
  expect(passwordWork().waiting).toBe(4);
  // A person who signs in for the first time gets a place.
  const first = code(signInWithPassword(system, { email: fresh.email, password: PASSWORD, address: "192.0.2.1" }));
  await expect.poll(() => passwordWork().waiting, wait).toBe(5);
  const manyNetworks = tries((index) => `2001:db8:2:${index.toString(16)}::1`, 60);
  await expect.poll(() => settled(manyNetworks), wait).toBe(15);
  expect(passwordWork().waiting).toBe(50);
  // A person at another address of the office, which is the same /64, gets one of the places that are left.
  const second = code(
    signInWithPassword(system, { email: known.email, password: PASSWORD, address: "2001:db8:a::99" }),
  );
  await expect.poll(() => passwordWork().waiting, wait).toBe(51);
  held.resolve();
  expect([await first, await second]).toEqual(["done", "done"]);
  expect(await Promise.all(oneNetwork)).toEqual(expect.arrayContaining(["too-many", "unauthenticated"]));
  await Promise.all([...blocked, ...manyNetworks]);
}, 120_000);

it("keeps at most 20,000 counts and the ones near a limit among them", async () => {
  const old = new Date(Date.now() - 10 * 60_000).toISOString();
  await test.sql`
    insert into sign_in_failures (key, count, since)
    select 'made-up-' || n, 1, now() from generate_series(1, 22000) n
    union all select 'guessed', 19, ${old}::timestamptz`;
  for (let network = 0; network < 256; network++) {
    await acceptInvite(from(`10.1.0.${network}`), invitation).catch(() => undefined);
  }
  const rows = await test.db.select().from(signInFailures);
  expect(rows.length).toBeLessThanOrEqual(20_256);
  expect(rows.map(({ key }) => key)).toContain("guessed");
});

it("counts a link for a new password with the rest", async () => {
  for (let tried = 0; tried < 60; tried++) await acceptInvite(from("10.0.0.1"), invitation).catch(() => undefined);
  const redeemed = redeemPasswordLink(from("10.0.0.1"), { code: wrong, password: "correct horse" });
  await expect(redeemed).rejects.toMatchObject({
    code: "too-many",
    message: expect.stringContaining("network") as string,
  });
});

it("takes an invitation that is accepted back, so that a class behind one address can join", async () => {
  const world = await makeWorld(test.db);
  for (let joined = 0; joined < 62; joined++) {
    const email = `pupil-${joined}@example.org`;
    const { code } = await createCode(world.system, "invite", 600, { email, teamId: world.team, role: "member" });
    expect(await acceptInvite(from("10.0.0.1"), { ...invitation, code })).toMatchObject({ email });
  }
}, 120_000);
