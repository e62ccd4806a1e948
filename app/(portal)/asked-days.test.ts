import { expect, it } from "vitest";
import { askedDays, lastHours } from "./asked-days.ts";

const now = new Date("2026-11-24T13:00:00Z");
const week = { now, usually: 7, most: 731 };
const titleOf = (from: string, to: string, bounds: Parameters<typeof askedDays>[1] = week) =>
  askedDays({ from, to }, bounds).wrong?.title;

it("reads days with the last one in them, and usual ones where none are asked", () => {
  expect(askedDays({ from: "2026-11-01", to: "2026-11-02" }, week)).toEqual({
    ...{ from: "2026-11-01", to: "2026-11-02", wrong: undefined },
    span: { from: "2026-11-01T00:00:00.000Z", to: "2026-11-03T00:00:00.000Z" },
  });
  expect(askedDays({ from: "", to: "" }, week)).toMatchObject({ from: "2026-11-18", to: "2026-11-24" });
  expect(askedDays({ from: "", to: "2025-03-07" }, week)).toMatchObject({ from: "2025-03-01", wrong: undefined });
  expect(askedDays({ from: "", to: "" }, { now })).toEqual({ from: "", to: "", span: {}, wrong: undefined });
});

it.each(["2026-02-30", "2026-13-01", "2026-11-1", "9999-12-31", "0000-00-00", "yesterday", "2026-11-24'--"])(
  "says that %s is no day",
  (text) => {
    expect(titleOf(text, "")).toBe(`“${text}” is no day`);
    expect(titleOf("", text, { now })).toBe(`“${text}” is no day`);
    expect(() => askedDays({ from: text, to: text }, week)).not.toThrow();
  },
);

it("says what is wrong with days that cannot be read together", () => {
  expect(titleOf("2026-11-02", "2026-11-01")).toBe("The time ends before it begins");
  expect(titleOf("2026-11-25", "2026-11-26")).toBe("This time has not come yet");
  expect(titleOf("2024-11-24", "2026-11-24")).toBe(undefined);
  expect(titleOf("2024-11-23", "2026-11-24")).toBe("This time is too long");
  expect(titleOf("1999-01-01", "", { now })).toBe(undefined);
});

it("reads hours up to now as the days that they lie in", () => {
  const at = new Date("2026-11-25T02:30:00Z");
  expect(lastHours(6, at)).toEqual({
    ...{ from: "2026-11-24", to: "2026-11-25", wrong: undefined },
    span: { from: "2026-11-24T20:30:00.000Z", to: "2026-11-25T02:30:00.000Z" },
  });
});

it("reads days as the clocks of a zone have them, also the one on which they are put back", () => {
  const berlin = { now, zone: "Europe/Berlin" };
  expect(askedDays({ from: "2026-10-25", to: "2026-10-25" }, berlin).span).toEqual({
    ...{ from: "2026-10-24T22:00:00.000Z", to: "2026-10-25T23:00:00.000Z" },
  });
  const lateInTokyo = { now: new Date("2026-11-24T16:00:00Z"), zone: "Asia/Tokyo" };
  expect(titleOf("2026-11-25", "", lateInTokyo)).toBe(undefined);
  expect(askedDays({ from: "2026-11-26", to: "" }, lateInTokyo).wrong?.hint).toContain("2026-11-25 in UTC+9");
});
