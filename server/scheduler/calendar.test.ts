import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { edgesAfter, type KindWindow, kindsAt, minuteOfWeek, quotaAt, type Window, within } from "./calendar.ts";
import { moreLater } from "./later.ts";
import { type Promised, prove } from "./packing.ts";
import { promisesAt } from "./share.ts";
import { device, quota, world } from "./testing.ts";

const MINUTE = 60_000;
const at = (text: string) => Date.parse(`${text}:00Z`);
const iso = (then: number) => new Date(then).toISOString().slice(0, 16);
const [MON, SUN] = [0, 6 * 24 * 60];
const clock = (hour: number, minute = 0) => hour * 60 + minute;
const plain = { guaranteedMilli: 0, limitMilli: 1000 };
const more = { guaranteedMilli: 1000, limitMilli: 2000 };

describe("a window by the clocks of a zone", () => {
  const holds = (zone: string, window: Window, then: string) =>
    quotaAt({ zone, plain, windows: [{ ...window, ...more }], additions: [] }, at(then)).limitMilli === 2000;
  const office = { from: MON + clock(9), to: MON + clock(17) };

  it("holds at the same hours in winter and in summer", () => {
    // Mondays.
    for (const [zone, day, from, to] of [
      ["UTC", "2027-01-11", "09:00", "17:00"],
      ["Europe/Berlin", "2027-01-11", "08:00", "16:00"],
      ["Europe/Berlin", "2027-07-12", "07:00", "15:00"],
      ["Asia/Kolkata", "2027-01-11", "03:30", "11:30"],
      ["America/St_Johns", "2027-01-11", "12:30", "20:30"],
      ["America/St_Johns", "2027-07-12", "11:30", "19:30"],
    ] as const) {
      const [first, end] = [at(`${day}T${from}`), at(`${day}T${to}`)];
      const seen = [first - MINUTE, first, end - MINUTE, end].map((then) => holds(zone, office, iso(then)));
      expect([zone, day, ...seen]).toEqual([zone, day, false, true, true, false]);
    }
  });

  it("runs over the week's end, which is Monday 00:00 of that zone", () => {
    const weekend = { from: SUN + clock(23), to: MON + clock(1) };
    const berlin = (then: string) => holds("Europe/Berlin", weekend, then);
    expect(["2027-01-10T21:59", "2027-01-10T22:00", "2027-01-10T23:59", "2027-01-11T00:00"].map(berlin)).toEqual([
      ...[false, true, true, false],
    ]);
    expect(minuteOfWeek("Asia/Kolkata", at("2027-01-10T18:30"))).toBe(MON);
    expect(minuteOfWeek("America/St_Johns", at("2027-01-11T03:29"))).toBe(SUN + clock(23, 59));
  });

  it("begins with the change where the clocks skip its beginning, and holds twice what they show twice", () => {
    const night = { from: SUN + clock(2, 30), to: SUN + clock(3, 30) };
    const berlin = (then: string) => holds("Europe/Berlin", night, then);
    expect(["2027-03-28T00:59", "2027-03-28T01:00", "2027-03-28T01:29", "2027-03-28T01:30"].map(berlin)).toEqual([
      ...[false, true, true, false],
    ]);
    expect(["2027-10-31T00:30", "2027-10-31T01:00", "2027-10-31T01:30", "2027-10-31T02:30"].map(berlin)).toEqual([
      ...[true, false, true, false],
    ]);
  });
});

describe("what a type takes", () => {
  const nightly: KindWindow = { from: SUN + clock(20), to: MON + clock(8), kind: "batch" };
  const next = (then: string) => {
    const { kinds, nextAt } = kindsAt("Europe/Berlin", [nightly], at(then));
    return [kinds.join(" and "), nextAt === undefined ? undefined : iso(nextAt)];
  };

  it("changes when the clocks show it, also after they have changed", () => {
    expect(next("2027-01-10T19:30")).toEqual(["batch", "2027-01-11T07:00"]);
    expect(next("2027-03-28T18:00")).toEqual(["batch", "2027-03-29T06:00"]);
    expect(next("2027-03-28T17:59")).toEqual(["interactive and batch", undefined]);
    // From before the change to after it.
    const days: KindWindow = { from: SUN - clock(24), to: MON + clock(8), kind: "batch" };
    expect(iso(kindsAt("Europe/Berlin", [days], at("2027-10-30T12:00")).nextAt ?? 0)).toBe("2027-11-01T07:00");
    expect(iso(kindsAt("Europe/Berlin", [days], at("2027-03-27T12:00")).nextAt ?? 0)).toBe("2027-03-29T06:00");
  });
});

describe("the times at which windows change", () => {
  it("are the change itself where the clocks skip a beginning, which they show a week later", () => {
    const night = { from: SUN + clock(2, 30), to: SUN + clock(3, 30) };
    const edges = (text: string) => edgesAfter("Europe/Berlin", [night], at(text)).map(iso);
    expect(edges("2027-03-27T12:00")).toEqual(["2027-03-28T01:00", "2027-03-28T01:30", "2027-04-04T00:30"]);
    expect(edges("2027-10-31T00:45")).toEqual(["2027-10-31T01:00", "2027-10-31T01:30", "2027-10-31T02:30"]);
    expect(edges("2027-06-05T12:00")).toEqual(["2027-06-06T00:30", "2027-06-06T01:30"]);
  });

  /** Any, and often one of the hours in which clocks are put forward or back. */
  const minute = fc.oneof(
    fc.integer({ min: 0, max: 7 * 24 * 60 - 1 }),
    fc.integer({ min: SUN + clock(0), max: SUN + clock(4) }),
  );
  /** Beside Berlin's and St John's changes, and far from any. */
  const begin = fc.constantFrom("2027-03-25T12:00", "2027-03-12T05:07", "2027-10-30T23:30", "2027-06-01T00:00");

  it("tell the next change, and whatever windows say in a week they say at one of them or now", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns"),
        fc.array(fc.record({ from: minute, to: minute }), { minLength: 1, maxLength: 3 }),
        begin,
        (zone, windows, from) => {
          const now = at(from);
          const said = (then: number) => windows.map((one) => within(one, minuteOfWeek(zone, then))).join();
          const edges = edgesAfter(zone, windows, now);
          const known = new Set([now, ...edges].map(said));
          const minutes = Array.from({ length: 7 * 24 * 60 }, (_, index) => now + index * MINUTE);
          const first = minutes.find((then) => said(then) !== said(now));
          expect(minutes.filter((then) => !known.has(said(then)))).toEqual([]);
          expect(edges.find((then) => said(then) !== said(now))).toBe(first);
          expect(edges).toEqual([...new Set(edges)].sort((a, b) => a - b));
          expect(edges.every((edge) => edge > now)).toBe(true);
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe("what is promised beyond a change of the clocks", () => {
  const office = { from: MON + clock(9), to: MON + clock(17), ...more };
  /** Before Berlin's clocks are put forward on 28 March. */
  const now = at("2027-03-22T12:00");

  it("is proved by the clocks of its own time", () => {
    const promised = { teamId: "vision", teamName: "vision", ...plain, largestMilli: 1000, windows: [office] };
    const proof = (from: string, to: string, rest: Partial<Promised> = {}) => {
      const reserved = { teamId: "nlp", milli: 1000, unitMilli: 1000, from: at(from), to: at(to) };
      const nlp = { ...promised, teamId: "nlp", teamName: "nlp", windows: [] };
      const all = { zone: "Europe/Berlin", quotas: [promised, nlp], additions: [], reservations: [reserved], ...rest };
      return prove([{ id: "0", name: "soft-0", serverName: "gpu-1" }], all, now);
    };
    // The office hours of Monday the 29th begin at 07:00 UTC, those of the 22nd still at 08:00.
    expect(proof("2027-03-29T04:00", "2027-03-29T07:00")).toMatchObject({ ok: true });
    expect(proof("2027-03-29T04:00", "2027-03-29T07:01")).toMatchObject({ ok: false, at: at("2027-03-29T07:00") });
    expect(proof("2027-03-29T15:00", "2027-03-29T20:00")).toMatchObject({ ok: true });
    expect(proof("2027-11-01T04:00", "2027-11-01T08:00")).toMatchObject({ ok: true });
    // A stretch that begins before the change meets the first office hours after it.
    expect(proof("2027-03-27T04:00", "2027-03-29T08:00")).toMatchObject({ ok: false, at: at("2027-03-29T07:00") });
    const utc = { zone: "UTC" };
    expect(proof("2027-03-29T04:00", "2027-03-29T09:00", utc)).toMatchObject({ ok: true });
  });

  it("is told and counted by the clocks of its own time", () => {
    const calendar = { zone: "Europe/Berlin", plain, windows: [office], additions: [] };
    const then = { devices: [device("0")], quotas: [quota("vision", 0, 1000, { calendar })] };
    const before = world({ now: at("2027-03-28T00:30"), ...then });
    expect(moreLater({ teamId: "vision", userId: "ada", guaranteedOnly: false }, 2000, before)).toEqual({
      ...{ at: at("2027-03-29T07:00"), milli: 2000 },
    });
    const limitAt = (text: string) => promisesAt(before, at(text)).quotas.get("vision")?.limitMilli;
    expect(["2027-03-29T06:59", "2027-03-29T07:00", "2027-03-29T15:00"].map(limitAt)).toEqual([1000, 2000, 1000]);
  });
});
