import { expect, it } from "vitest";
import { endOf, takenBackAt } from "./ends-in.tsx";

const [sooner, later] = ["2026-11-24T20:00:00.000Z", "2026-11-24T20:02:00.000Z"];

it.each([
  ["has no notice", null, null, later],
  ["is taken back before its time is up", sooner, sooner, sooner],
])("a lease that %s", (_, releaseAt, takenBack, end) => {
  expect(takenBackAt({ expiresAt: later, releaseAt })).toBe(takenBack);
  expect(endOf({ expiresAt: later, releaseAt })).toBe(end);
});

it("a lease whose time is up before it would be taken back ends when its time is up", () => {
  const lease = { expiresAt: sooner, releaseAt: later };
  expect(takenBackAt(lease)).toBeNull();
  expect(endOf(lease)).toBe(sooner);
});
