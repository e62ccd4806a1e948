import { describe, expect, it } from "vitest";
import { occurrencesOf } from "./occurrences.ts";

const BERLIN = "Europe/Berlin";
const lesson = { startsAt: new Date("2027-03-16T09:00:00Z"), endsAt: new Date("2027-03-16T11:00:00Z") };
const weekly = (first: typeof lesson, until: string, timeZone = BERLIN) =>
  occurrencesOf(first, { until, timeZone }).map(({ startsAt, endsAt }) => [
    startsAt.toISOString().slice(0, 16),
    endsAt.toISOString().slice(0, 16),
  ]);
const between = (startsAt: string, endsAt: string) => ({ startsAt: new Date(startsAt), endsAt: new Date(endsAt) });

describe("the times of a reservation", () => {
  it("are one where it is not repeated, or no week later is within its last date", () => {
    expect(occurrencesOf(lesson, undefined)).toEqual([lesson]);
    expect(weekly(lesson, "2027-03-16")).toHaveLength(1);
    expect(weekly(lesson, "2027-03-22")).toHaveLength(1);
    expect(weekly(lesson, "2027-03-23")).toHaveLength(2);
  });

  it("are the same by the zone's clocks on both sides of a change of them", () => {
    expect(weekly(lesson, "2027-03-30")).toEqual([
      ["2027-03-16T09:00", "2027-03-16T11:00"],
      ["2027-03-23T09:00", "2027-03-23T11:00"],
      ["2027-03-30T08:00", "2027-03-30T10:00"],
    ]);
    expect(weekly(lesson, "2027-03-30", "UTC").at(-1)).toEqual(["2027-03-30T09:00", "2027-03-30T11:00"]);
    // From 22:00 to 06:00 over the night in which an hour is skipped.
    expect(weekly(between("2027-03-20T21:00:00Z", "2027-03-21T05:00:00Z"), "2027-03-27").at(-1)).toEqual([
      ...["2027-03-27T21:00", "2027-03-28T04:00"],
    ]);
  });

  it("count their last date by the zone's clocks", () => {
    // 00:30 on Tuesday in Berlin is Monday in UTC.
    const night = between("2027-01-04T23:30:00Z", "2027-01-05T00:30:00Z");
    expect(weekly(night, "2027-01-18")).toHaveLength(2);
    expect(weekly(night, "2027-01-19")).toHaveLength(3);
    expect(weekly(night, "2027-01-18", "UTC")).toHaveLength(3);
  });

  it("are at most half a year's, and the refusal says until when", () => {
    expect(weekly(lesson, "2027-09-07")).toHaveLength(26);
    expect(weekly(lesson, "2027-09-13")).toHaveLength(26);
    expect(() => weekly(lesson, "2027-09-14")).toThrow("repeat.until: At most 26 weeks at once: until 2027-09-07");
    expect(() => weekly(lesson, "2999-01-01")).toThrow("At most 26 weeks");
    expect(() => weekly(lesson, "2027-03-15")).toThrow("repeat.until: The last date is before the first one");
  });

  it("come one after the other", () => {
    const week = between("2027-03-01T09:00:00Z", "2027-03-08T09:00:00Z");
    expect(weekly(week, "2027-03-15")).toHaveLength(3);
    const longer = { ...week, endsAt: new Date("2027-03-08T09:00:01Z") };
    expect(() => weekly(longer, "2027-03-15")).toThrow("endsAt: It would last into the next one, on 2027-03-08");
  });

  it("are none in an hour that the clocks skip", () => {
    // From 02:00 to 03:00, which the clocks of that Sunday do not show.
    const early = between("2027-03-21T01:00:00Z", "2027-03-21T02:00:00Z");
    expect(() => weekly(early, "2027-04-04")).toThrow(
      "repeat.until: On 2027-03-28 the clocks of Europe/Berlin skip this",
    );
    expect(weekly(early, "2027-03-27")).toHaveLength(1);
  });
});
