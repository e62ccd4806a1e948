import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, it } from "vitest";
import { EndsIn, endOf, idleEndOf, takenBackAt } from "./ends-in.tsx";

const [sooner, later] = ["2026-11-24T20:00:00.000Z", "2026-11-24T20:02:00.000Z"];

it.each([
  ["has no notice", null, null, later],
  ["is taken back before its time is up", sooner, sooner, sooner],
])("a lease that %s", (_, releaseAt, takenBack, end) => {
  const lease = { expiresAt: later, idleEndsAt: null, releaseAt };
  expect(takenBackAt(lease)).toBe(takenBack);
  expect(endOf(lease)).toBe(end);
});

it("a lease whose time is up before it would be taken back ends when its time is up", () => {
  const lease = { expiresAt: sooner, idleEndsAt: null, releaseAt: later };
  expect(takenBackAt(lease)).toBeNull();
  expect(endOf(lease)).toBe(sooner);
});

it.each([
  ["idle limit before its time limit ends at its idle limit", { idleEndsAt: sooner, expiresAt: later }, sooner],
  ["time limit before its idle limit ends at its time limit", { idleEndsAt: later, expiresAt: sooner }, null],
])("a lease with its %s", (_, limits, idle) => {
  const lease = { ...limits, releaseAt: null };
  expect(idleEndOf(lease)).toBe(idle);
  expect(endOf(lease)).toBe(sooner);
});

it.each([
  [
    "both limits where the idle limit comes first",
    { idleEndsAt: sooner, releaseAt: null },
    /idle limit in .*time limit in/,
  ],
  [
    "the time limit alone where nobody can tell the idle limit",
    { idleEndsAt: null, releaseAt: null },
    /^(?!.*idle).*time limit in/,
  ],
  ["neither for a lease that is taken back", { idleEndsAt: sooner, releaseAt: sooner }, /^(?!.*limit).*taken back in/],
])("names %s", (_, ends, words) => {
  const html = renderToStaticMarkup(createElement(EndsIn, { lease: { expiresAt: later, ...ends } }));
  expect(html).toMatch(words);
});
