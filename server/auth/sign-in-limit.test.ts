/** Everything that hashes a password for somebody who is not signed in is counted by the client's address. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { createCode } from "#server/auth/one-time-code.ts";
import { anonymous } from "#server/auth/principal.ts";
import { type Context, systemContext } from "#server/context.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { signInWithPassword } from "#server/services/session/sign-in-with-password.ts";
import { complete } from "#server/services/setup/complete.ts";
import { makeWorld } from "#server/services/testing.ts";
import { acceptInvite } from "#server/services/user/accept-invite.ts";
import { redeemPasswordLink } from "#server/services/user/redeem-password-link.ts";

let test: TestDatabase;
let system: Context;
beforeEach(async () => {
  test = await createTestDatabase();
  system = systemContext(test.db);
});
afterEach(async () => await test.drop());

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
