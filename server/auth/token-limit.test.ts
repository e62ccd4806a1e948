import { expect, it } from "vitest";
import type { Principal } from "#server/auth/principal.ts";
import { limitToken, retryAfterSeconds } from "#server/auth/token-limit.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";

const caller = (tokenId?: string): Principal => ({
  ...{ kind: "user", userId: newId("usr"), email: "ada@example.org", name: "Ada", isAdmin: false, teams: {} },
  ...(tokenId === undefined ? {} : { tokenId }),
});

function refusal(principal: Principal, at: number): SluiceError | undefined {
  try {
    limitToken(principal, at);
    return undefined;
  } catch (error) {
    if (error instanceof SluiceError) return error;
    throw error;
  }
}

it("lets a token ask as often as a minute allows, says when again, and counts each token apart", () => {
  const limit = env().SLUICE_TOKEN_REQUESTS_PER_MINUTE;
  const [one, other] = [caller(newId("pat")), caller(newId("pat"))];
  for (let asked = 0; asked < limit; asked++) expect(refusal(one, 0)).toBeUndefined();
  const refused = refusal(one, 0);
  expect(refused).toMatchObject({ code: "too-many", detail: { retryAfterSeconds: 1 } });
  expect(refused && retryAfterSeconds(refused)).toBe(1);
  expect(refusal(other, 0)).toBeUndefined();
  // A second fills a sixtieth of it again.
  for (let asked = 0; asked < Math.floor(limit / 60); asked++) expect(refusal(one, 1000)).toBeUndefined();
  expect(refusal(one, 1000)?.code).toBe("too-many");
});

it("counts nothing of who signed in with a browser", () => {
  const limit = env().SLUICE_TOKEN_REQUESTS_PER_MINUTE;
  for (let asked = 0; asked < 2 * limit; asked++) expect(refusal(caller(), 0)).toBeUndefined();
});
