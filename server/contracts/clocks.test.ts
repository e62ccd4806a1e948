import { describe, expect, it } from "vitest";
import { aheadAt, changesBetween } from "./clocks.ts";
import { aheadOf } from "./time-zone.ts";

const HOUR = 3_600_000;
const changes = (zone: string, from: string, to: string) =>
  changesBetween(zone, Date.parse(from), Date.parse(to)).map((at) => new Date(at).toISOString());

describe("the clocks of a zone", () => {
  it("are so far ahead as whoever asks about one instant is told, beside a change too", () => {
    for (const zone of ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe"]) {
      for (let at = Date.parse("2027-03-01T00:15:00Z"); at < Date.parse("2027-11-15T00:00:00Z"); at += 7.25 * HOUR) {
        expect(`${zone} ${at} ${aheadAt(zone, at)}`).toBe(`${zone} ${at} ${aheadOf(zone, at)}`);
      }
    }
    const change = Date.parse("2027-03-28T01:00:00Z");
    expect([-1, 0].map((ms) => aheadAt("Europe/Berlin", change + ms) / HOUR)).toEqual([1, 2]);
  });

  it("are put forward and back at these instants", () => {
    expect(changes("Europe/Berlin", "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z")).toEqual([
      ...["2027-03-28T01:00:00.000Z", "2027-10-31T01:00:00.000Z"],
    ]);
    // One minute past midnight, as it was there then.
    expect(changes("America/St_Johns", "2010-03-01T00:00:00Z", "2010-04-01T00:00:00Z")).toEqual([
      "2010-03-14T03:31:00.000Z",
    ]);
    expect(changes("Asia/Kolkata", "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z")).toEqual([]);
    expect(changes("Europe/Berlin", "2027-03-28T01:00:00Z", "2027-10-31T01:00:00Z")).toEqual([]);
  });
});
