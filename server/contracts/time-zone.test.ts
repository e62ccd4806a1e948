import { describe, expect, it } from "vitest";
import { clockIn, instantIn, offsetLabel, weeksAfter, zoneNamed } from "./time-zone.ts";
import { zoneName } from "./zone-name.ts";

describe("a time zone", () => {
  it("has the spelling of IANA, and is never an offset", () => {
    expect(["europe/berlin", "EUROPE/BERLIN", "Europe/Berlin", "utc"].map(zoneNamed)).toEqual([
      ...["Europe/Berlin", "Europe/Berlin", "Europe/Berlin", "UTC"],
    ]);
    // An alias that people know stays.
    expect(zoneNamed("Asia/Kolkata")).toBe("Asia/Kolkata");
    for (const offset of ["+02:00", "-0330", "+02", "Nowhere/City", "", "UTC+2"]) {
      expect(zoneNamed(offset)).toBeUndefined();
    }
    expect(zoneName("which?").parse("america/new_york")).toBe("America/New_York");
    expect(zoneName("which?").safeParse("+02:00").error?.issues[0]?.message).toBe("which?");
  });

  it("names the offset of the instant, not of today", () => {
    const [winter, summer] = [Date.parse("2026-01-10T12:00:00Z"), Date.parse("2026-07-10T12:00:00Z")];
    expect(offsetLabel("Europe/Berlin", winter)).toBe("UTC+1");
    expect(offsetLabel("Europe/Berlin", summer)).toBe("UTC+2");
    expect(offsetLabel("America/St_Johns", winter)).toBe("UTC-3:30");
    expect(offsetLabel("UTC", summer)).toBe("UTC");
    expect(clockIn("Asia/Kolkata", winter)).toBe("2026-01-10T17:30:00");
  });

  it("finds the instant of what was typed, also beside a change of the clocks", () => {
    const berlin = (local: string) => instantIn("Europe/Berlin", local);
    expect(berlin("2026-01-10T12:00")).toBe("2026-01-10T11:00:00.000Z");
    expect(berlin("2026-03-29T01:30")).toBe("2026-03-29T00:30:00.000Z");
    expect(berlin("2026-03-29T03:30")).toBe("2026-03-29T01:30:00.000Z");
    expect(berlin("2026-10-25T03:30")).toBe("2026-10-25T02:30:00.000Z");
    expect(instantIn("UTC", "2099-01-06T10:00")).toBe("2099-01-06T10:00:00.000Z");
    expect(instantIn("America/New_York", "2026-11-01T03:00")).toBe("2026-11-01T08:00:00.000Z");
  });

  it("leaves what is no time to the API", () => {
    for (const typed of ["", "soon", "275760-09-13T00:00"]) expect(instantIn("Europe/Berlin", typed)).toBe(typed);
  });

  it("reads an hour that is skipped as the one after it, and of an hour shown twice the first", () => {
    expect(instantIn("Europe/Berlin", "2026-03-29T02:30")).toBe("2026-03-29T01:30:00.000Z");
    expect(instantIn("Europe/Berlin", "2026-10-25T02:30")).toBe("2026-10-25T00:30:00.000Z");
  });

  it("finds the same time of day some weeks on, also across a change of the clocks", () => {
    const berlin = (at: string, weeks: number) =>
      new Date(weeksAfter("Europe/Berlin", Date.parse(at), weeks)).toISOString();
    expect(berlin("2027-03-23T09:00:00.250Z", 1)).toBe("2027-03-30T08:00:00.250Z");
    expect(berlin("2027-10-26T08:00:00Z", 1)).toBe("2027-11-02T09:00:00.000Z");
    expect(berlin("2027-03-14T01:30:00Z", 2)).toBe("2027-03-28T01:30:00.000Z");
    expect(berlin("2027-03-14T01:30:00Z", 3)).toBe("2027-04-04T00:30:00.000Z");
    expect(berlin("2027-03-23T09:00:00Z", 0)).toBe("2027-03-23T09:00:00.000Z");
  });
});
