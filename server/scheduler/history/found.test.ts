/** Histories in which random play, or the soak, has found a fault of the scheduler: each was one, and must stay mended. */
import { describe, expect, test } from "vitest";
import { evaluate } from "../queue.ts";
import { device, quota } from "../testing.ts";
import type { Device, Quota } from "../types.ts";
import { type Event, play } from "./history.ts";
import { broken } from "./properties.ts";

type Asked = Extract<Event, { do: "ask" }>;
const GIB = 1024 ** 3;
const [VISION, NLP, BIO] = [0, 1, 2];

/** Devices of one server. */
const devices = (count: number) =>
  Array.from({ length: count }, (_, index) => device(String(index), { serverId: "s0", serverName: "gpu-0" }));

const teams = (...quotas: [guaranteed: number, limit: number, rest?: Partial<Quota>][]) =>
  quotas.map(([guaranteed, limit, rest], index) =>
    quota(["vision", "nlp", "bio"][index] ?? "", guaranteed, limit, { priority: 0, weight: 1, ...rest }),
  );

const ask = (team: number, milli: number, rest: Partial<Asked> = {}): Asked => {
  const least = { do: "ask" as const, person: 0, memoryBytes: 0, guaranteedOnly: false, rank: 0, minutes: 5 };
  return { ...least, team, milli, ...rest };
};
const reserve = (team: number): Event => {
  return { do: "reserve", team, person: undefined, units: 1, inMinutes: 0, minutes: 5 };
};
const end = (which: number): Event => ({ do: "end", which });

describe("no rule is broken where", () => {
  test("one that is granted for good lets a lease into the guarantee that has just been told to go", () => {
    const setup = { devices: devices(3), quotas: teams([750, 1000], [1000, 4000], [1000, 1000]) };
    const events = [
      ...[ask(NLP, 250), ask(NLP, 1000), ask(NLP, 501), ask(VISION, 1000)],
      ask(NLP, 1, { memoryBytes: 2 * GIB, guaranteedOnly: true }),
      ...[ask(BIO, 500), end(0), ask(VISION, 250)],
    ];
    expect(broken(play({ setup, events }, evaluate).happened)).toBeUndefined();
  });
});

describe("a round leaves nothing to grant for the next one where", () => {
  test("a team takes more than is reserved for it, and so leaves what was kept for that", () => {
    const wholeCards = { coTenancy: "whole-cards" as const };
    const setup = { devices: devices(3), quotas: teams([0, 1000], [0, 1000, wholeCards], [0, 1000]) };
    const events = [
      ...[reserve(NLP), reserve(VISION), ask(BIO, 500), ask(BIO, 1), ask(BIO, 500)],
      ...[ask(NLP, 250), end(0)],
    ];
    const { round } = play({ setup, events }, evaluate).round();
    expect(round.verdicts.filter((verdict) => verdict.state !== "queued")).toEqual([]);
  });

  test("that team shares cards, and both that wait come to their turn at once", () => {
    const setup = { devices: devices(2), quotas: teams([0, 1000], [0, 1000], [0, 1000]) };
    const borrowed = [reserve(VISION), ask(NLP, 500), ask(NLP, 500)];
    const events = [...borrowed, ask(VISION, 1000), ask(BIO, 1000), { do: "crash" as const, person: 0 }];
    const { round } = play({ setup, events }, evaluate).round();
    expect(round.verdicts.filter((verdict) => verdict.state !== "queued")).toEqual([]);
  });

  test("one granted behind a claim that waits leaves less than the claim and an older one of its team will take", () => {
    const setup = { devices: devices(3), quotas: teams([1250, 4000], [1250, 1250], [250, 1000]) };
    const events = [
      ...[ask(VISION, 751), ask(VISION, 250, { guaranteedOnly: true }), ask(VISION, 250), ask(VISION, 3000)],
      ...[ask(NLP, 250, { memoryBytes: 2 * GIB }), end(13), ask(NLP, 2000, { memoryBytes: 5 * GIB })],
      ...[ask(VISION, 1000), ask(VISION, 250), ask(NLP, 1, { memoryBytes: GIB }), ask(VISION, 250), end(1), end(0)],
    ];
    const { round } = play({ setup, events }, evaluate).round();
    expect(round.verdicts.filter((verdict) => verdict.state !== "queued")).toEqual([]);
  });

  test("one granted more than is reserved for its team comes after one of it for whom room was made", () => {
    const own: Event = { do: "reserve", team: NLP, person: 0, units: 1, inMinutes: 0, minutes: 5 };
    const [one, other] = devices(2) as [Device, Device];
    const setup = {
      devices: [{ ...one, serverId: "s1", serverName: "gpu-1", memoryBytes: 16 * GIB }, other],
      quotas: teams([0, 1000], [0, 1000], [0, 1000]),
    };
    const events = [
      ...[{ ...reserve(NLP), units: 2 } as Event, ask(VISION, 1000, { minutes: 600 })],
      ...[ask(NLP, 250, { person: 1, memoryBytes: 9 * GIB, guaranteedOnly: true }), own],
      ask(NLP, 438, { person: 1 }),
    ];
    const machine = play({ setup, events }, evaluate);
    // Nothing changes from outside any more.
    machine.excused.clear();
    machine.advance(3 * 60_000);
    expect(broken(machine.happened)).toBeUndefined();
  });

  test("a person asks for less behind what they wait for on one device, and may hold no more than that at once", () => {
    const setup = { devices: devices(2), quotas: teams([0, 1000], [2000, 2000, { personMilli: 1000 }], [0, 1000]) };
    const events = [
      ...[ask(NLP, 250, { person: 1, pinned: 0 }), ask(VISION, 1000, { pinned: 1 })],
      ...[ask(NLP, 1000, { pinned: 0 }), ask(NLP, 250)],
    ];
    const { round } = play({ setup, events }, evaluate).round();
    expect(round.verdicts.map(({ requestId, state }) => [requestId, state])).toEqual([
      ["r02", "queued"],
      ["r03", "queued"],
    ]);
    expect(round).toMatchObject({ notices: [], kept: [] });
  });

  test("one of a team takes what another that waits for one device would borrow", () => {
    const setup = { devices: devices(2), quotas: teams([0, 1000], [0, 1000], [0, 1000]) };
    const events = [ask(VISION, 1000, { pinned: 0 }), ask(BIO, 250, { pinned: 0 }), ask(BIO, 1000, { person: 1 })];
    const { verdicts } = play({ setup, events }, evaluate).round().round;
    expect(verdicts).toMatchObject([{ requestId: "r01", obstacle: { rule: "team-limit" } }]);
  });

  test("one granted above a guarantee pushes out one that was granted later by a clock that has jumped back since", () => {
    const setup = {
      devices: [
        { ...devices(2)[0], zone: "z0" } as Device,
        { ...devices(2)[1], serverId: "s1", serverName: "gpu-1" } as Device,
      ],
      quotas: teams([0, 1000], [0, 1000], [1000, 1000]),
    };
    const events: Event[] = [
      ...[{ do: "wait" as const, minutes: 1 }, ask(NLP, 1000, { pinned: 0 }), { do: "jump" as const, minutes: -1 }],
      ...[{ ...reserve(NLP), units: 2 } as Event, ask(VISION, 1000, { pinned: 1 }), ask(BIO, 250, { zone: 0 })],
      ...[ask(NLP, 250), end(1)],
    ];
    const { round } = play({ setup, events }, evaluate).round();
    expect(round).toMatchObject({ notices: [], kept: [] });
  });

  test("one lease makes room for two parts of a reservation, and another had been found for the first of them", () => {
    const setup = { devices: devices(3), quotas: teams([1500, 1500], [0, 1000], [0, 1000]) };
    const own: Event = { do: "reserve", team: BIO, person: 0, units: 3, inMinutes: 0, minutes: 5 };
    const borrowed = [ask(VISION, 1000), ask(BIO, 1000, { person: 1 }), own, ask(VISION, 1, { memoryBytes: GIB })];
    const machine = play({ setup, events: [...borrowed, { do: "delete-team", team: VISION }] }, evaluate);
    expect(machine.happened.at(-1)?.round.notices.map(({ leaseId }) => leaseId)).toEqual(["r00#1"]);
    expect(machine.round().round).toMatchObject({ notices: [], withdrawn: [] });
  });

  test("room is made for one where a later one leaves enough for it too", () => {
    const setup = { devices: devices(3), quotas: teams([0, 4000], [0, 1000], [1500, 1500]) };
    const lent = [ask(VISION, 2000), ask(VISION, 250), ask(VISION, 500)];
    const machine = play({ setup, events: [...lent, ask(BIO, 500, { guaranteedOnly: true }), ask(BIO, 1)] }, evaluate);
    expect(machine.round().round).toMatchObject({ notices: [], withdrawn: [], kept: [] });
  });

  test("one takes of its right, elsewhere, what another of its team waits for on one device, and a third comes after both", () => {
    const setup = { devices: devices(2), quotas: teams([1000, 1000], [1000, 4000], [0, 1000]) };
    const events: Event[] = [
      ...[ask(NLP, 251), ask(NLP, 1000, { guaranteedOnly: true, pinned: 3 }), ask(VISION, 750)],
      { do: "stop", scope: "all", team: 0, person: 0 },
      ...[ask(NLP, 1000), ask(NLP, 250, { memoryBytes: GIB }), end(0), { do: "lift" as const, which: 0 }],
    ];
    const { round } = play({ setup, events }, evaluate).round();
    expect(round.verdicts.filter((verdict) => verdict.state !== "queued")).toEqual([]);
  });
});
