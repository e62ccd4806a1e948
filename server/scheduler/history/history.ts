/**
 * Random histories of a pool: people ask and leave, things crash, quotas are edited and differ by the time, budgets are
 * used up, servers go and come, clocks jump.
 */
import fc from "fast-check";
import { type KindWindow, kindsAt, minuteOfWeek, quotaAt } from "../calendar.ts";
import { leasesOf } from "../share.ts";
import { device, quota, waiting, world } from "../testing.ts";
import type { Device, Kind, Quota, Reservation, Stop, World } from "../types.ts";
import { type Evaluate, Machine } from "./machine.ts";

const GIB = 1024 ** 3;
const TEAMS = ["vision", "nlp", "bio"];
const PEOPLE = ["ada", "lin"];
const MINUTE = 60_000;
export const POLICY = { minRunMs: 3 * MINUTE, noticeMs: 2 * MINUTE };

export type Event =
  | {
      do: "ask";
      team: number;
      person: number;
      milli: number;
      memoryBytes: number;
      guaranteedOnly: boolean;
      rank: number;
      minutes: number;
      kind?: Kind;
      /** A device, or a server, of those that there are. */
      pinned?: number;
      zone?: number;
    }
  | { do: "end"; which: number }
  | { do: "crash"; person: number }
  | { do: "leave"; which: number }
  | { do: "edit"; team: number; guaranteedMilli: number; limitMilli: number; personMilli: number | undefined }
  | { do: "delete-team"; team: number }
  | { do: "lose"; server: number }
  | { do: "drain"; server: number }
  | { do: "back"; server: number }
  /** `inMinutes`: from now on, or from the end of the one that was made last. */
  | {
      do: "reserve";
      team: number;
      person: number | undefined;
      units: number;
      /** Of its leases. */
      unitMilli?: number;
      inMinutes: number | "after-the-last";
      minutes: number;
    }
  | { do: "stop"; scope: Stop["scope"]; team: number; person: number }
  | { do: "lift"; which: number }
  | { do: "wait"; minutes: number }
  | { do: "jump"; minutes: number };

/** `kinds`: when the pool takes one kind of work alone. */
export type Setup = { devices: Device[]; quotas: Quota[]; kinds?: KindWindow[] };

const amount = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(250, 500, 500, 750, 1000, 1000) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 1000 }) },
  { weight: 1, arbitrary: fc.constantFrom(2000, 3000) },
);

/** For a few of those who could have it. */
const few = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 15, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 24,
    arbitrary: fc.record({
      do: fc.constant("ask" as const),
      team: fc.nat(TEAMS.length - 1),
      person: fc.nat(PEOPLE.length - 1),
      milli: amount,
      memoryBytes: fc.oneof(
        { weight: 7, arbitrary: fc.constant(0) },
        { weight: 1, arbitrary: fc.integer({ min: 1, max: 12 }).map((n) => n * GIB) },
      ),
      guaranteedOnly: fc.oneof(
        { weight: 9, arbitrary: fc.constant(false) },
        { weight: 1, arbitrary: fc.constant(true) },
      ),
      rank: fc.constantFrom(0, 0, 0, 1, -1),
      minutes: fc.constantFrom(5, 60, 600, 600),
      kind: fc.constantFrom(...(["interactive", "interactive", "batch"] as const)),
      pinned: few(fc.nat(3)),
      zone: few(fc.nat(1)),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("end" as const), which: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("crash" as const), person: fc.nat(PEOPLE.length - 1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("leave" as const), which: fc.nat(20) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("edit" as const),
      team: fc.nat(TEAMS.length - 1),
      guaranteedMilli: fc.constantFrom(0, 500, 1000, 1500),
      limitMilli: fc.constantFrom(500, 1000, 2000, 4000),
      personMilli: fc.constantFrom(undefined, undefined, 500, 1000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("lose" as const, "drain" as const), server: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("back" as const), server: fc.nat(1) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("wait" as const), minutes: fc.constantFrom(1, 2, 3, 5, 10) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("jump" as const), minutes: fc.integer({ min: -600, max: 600 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("reserve" as const),
      team: fc.nat(TEAMS.length - 1),
      person: fc.constantFrom(undefined, 0, 0, 1),
      units: fc.constantFrom(1, 1, 2, 3),
      unitMilli: fc.constantFrom(500, 500, 250, 1000),
      inMinutes: fc.constantFrom(0, 0, 5, "after-the-last" as const, "after-the-last" as const),
      minutes: fc.constantFrom(5, 10, 30),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("stop" as const),
      scope: fc.constantFrom(...(["all", "team", "user"] as const)),
      team: fc.nat(TEAMS.length - 1),
      person: fc.nat(PEOPLE.length - 1),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("lift" as const), which: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("delete-team" as const), team: fc.nat(TEAMS.length - 1) }) },
);

/** Histories begin at 0, and most are over within the hour. */
const BEGIN = minuteOfWeek("UTC", 0);
const stretch = { start: fc.nat(40), minutes: fc.integer({ min: 1, max: 40 }) };
/** For one part of those who could have it. */
const some = <T>(weight: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight, arbitrary });

const byTheTime = fc.record({
  window: fc.record({
    ...stretch,
    part: fc.constantFrom(0, 0.5, 1),
    limitMilli: fc.constantFrom(500, 1000, 4000),
  }),
  addition: some(5, fc.record({ ...stretch, limitMilli: fc.constantFrom(500, 1000) })),
});

const setup: fc.Arbitrary<Setup> = fc
  .record({
    devices: fc.array(fc.record({ server: fc.nat(1), memoryBytes: fc.constantFrom(8 * GIB, 8 * GIB, 16 * GIB) }), {
      minLength: 1,
      maxLength: 4,
    }),
    quotas: fc.tuple(
      ...TEAMS.map(() =>
        fc.record({
          share: fc.nat(4),
          limitMilli: fc.constantFrom(1000, 2000, 4000, 4000),
          priority: fc.constantFrom(0, 0, 1),
          weight: fc.constantFrom(1, 1, 2),
          personMilli: fc.constantFrom(undefined, undefined, undefined, 500, 1000, 2000),
          coTenancy: fc.constantFrom(
            ...(["any", "any", "any", "any", "any", "any", "own-team", "whole-cards"] as const),
          ),
          // Never longer than the pool's, which bound how long a claimant waits.
          times: fc.constantFrom({}, {}, {}, { minRunMs: 0, noticeMs: MINUTE }, { minRunMs: MINUTE }),
          changes: some(1, byTheTime),
          budget: some(
            1,
            fc.record({ milliHours: fc.constantFrom(20, 100, 500), minutes: fc.constantFrom(10, 30, 600) }),
          ),
        }),
      ),
    ),
    // What is not guaranteed may be reserved.
    guaranteed: fc.constantFrom(1, 1, 0.5),
    kinds: some(1, fc.record({ ...stretch, kind: fc.constantFrom(...(["interactive", "batch"] as const)) })),
  })
  .map(({ devices, quotas, kinds, guaranteed }) => {
    const capacity = devices.length * 1000 * guaranteed;
    const shares = Math.max(
      1,
      quotas.reduce((sum, one) => sum + one.share, 0),
    );
    return {
      devices: devices.map(({ server, memoryBytes }, index) =>
        device(String(index), { serverId: `s${server}`, serverName: `gpu-${server}`, zone: `z${server}`, memoryBytes }),
      ),
      kinds: kinds === undefined ? [] : [{ ...inTheWeek(kinds), kind: kinds.kind }],
      // Multiples of a quarter, that together never exceed the pool.
      quotas: quotas.map(({ share, limitMilli, changes, budget, ...rest }, index) => {
        const guaranteedMilli = Math.floor((capacity * share) / shares / 250) * 250;
        const plain = { guaranteedMilli, limitMilli: Math.max(limitMilli, guaranteedMilli) };
        return quota(TEAMS[index] ?? "", plain.guaranteedMilli, plain.limitMilli, {
          ...rest,
          ...(changes && { calendar: calendarOf(plain, changes) }),
          ...(budget && {
            budget: { milliHours: budget.milliHours, usedMilliHours: 0, endsAt: budget.minutes * MINUTE },
          }),
        });
      }),
    };
  });

function inTheWeek({ start, minutes }: { start: number; minutes: number }): { from: number; to: number } {
  return { from: BEGIN + start, to: BEGIN + start + minutes };
}

type ByTheTime = typeof byTheTime extends fc.Arbitrary<infer T> ? T : never;

/** Never more guaranteed than without it: what is guaranteed at any time fits the pool. */
function calendarOf(plain: Pick<Quota, "guaranteedMilli" | "limitMilli">, { window, addition }: ByTheTime) {
  const guaranteedMilli = Math.floor((plain.guaranteedMilli * window.part) / 250) * 250;
  const limitMilli = Math.max(window.limitMilli, guaranteedMilli);
  const added = addition && {
    ...{ guaranteedMilli: 0, limitMilli: addition.limitMilli },
    ...{ from: addition.start * MINUTE, to: (addition.start + addition.minutes) * MINUTE },
  };
  const windows = [{ ...inTheWeek(window), guaranteedMilli, limitMilli }];
  return { zone: "UTC", plain, windows, additions: added === undefined ? [] : [added] };
}

/** What the calendars of the teams and of the pool say of this time. */
function inForce(before: World, kinds: readonly KindWindow[]): World {
  const { now } = before;
  const quotas = [...before.quotas].map(([teamId, one]) => {
    if (one.calendar === undefined) return [teamId, one] as const;
    return [teamId, { ...one, ...quotaAt(one.calendar, now) }] as const;
  });
  return { ...before, quotas: new Map(quotas), open: kindsAt("UTC", kinds, now) };
}

/** The most that is guaranteed at any time. */
function mostGuaranteed({ calendar, guaranteedMilli }: Quota): number {
  return calendar?.plain.guaranteedMilli ?? guaranteedMilli;
}

/** A pool, and what happens to it. */
export const histories: fc.Arbitrary<{ setup: Setup; events: Event[] }> = fc.record({
  setup,
  events: fc.array(event, { minLength: 1, maxLength: 40, size: "max" }),
});

/** Plays a history through; what happened is in the machine. */
export function play(history: { setup: Setup; events: Event[] }, evaluate: Evaluate): Machine {
  const start = world({ devices: history.setup.devices, quotas: history.setup.quotas, policy: POLICY });
  const { kinds = [] } = history.setup;
  const machine = new Machine(start, evaluate, (before) => inForce(before, kinds));
  history.events.forEach((one, index) => {
    apply(machine, one, index);
    machine.round();
  });
  return machine;
}

function apply(machine: Machine, event: Event, index: number): void {
  const { now, queue, holdings, devices } = machine.world;
  const disturb = () => {
    for (const { requestId } of queue) machine.excused.add(requestId);
  };
  switch (event.do) {
    case "ask": {
      const { team, person, minutes, pinned, zone, ...rest } = event;
      const at = pinned === undefined ? undefined : devices[pinned % devices.length]?.id;
      const milli = rest.memoryBytes > 0 ? 1 : rest.milli;
      const { guaranteedOnly, rank, memoryBytes, kind } = rest;
      const who = { teamId: TEAMS[team] ?? "", userId: `${TEAMS[team]}-${PEOPLE[person]}` };
      const times = { createdAt: now, lengthMs: minutes * MINUTE };
      const asked = waiting(`r${String(index).padStart(2, "0")}`, milli, {
        ...who,
        guaranteedOnly,
        rank,
        memoryBytes,
        ...times,
        ...(kind && { kind }),
        ...(at !== undefined && rest.milli <= 1000 && { pinnedGpuId: at }),
        ...(zone !== undefined && { needs: { zone: `z${zone}` } }),
        maxDevices: 8,
      });
      machine.change({ queue: [...queue, asked] });
      return;
    }
    case "end": {
      const leases = leasesOf(holdings);
      const lease = leases[event.which % Math.max(1, leases.length)];
      if (lease) machine.end(lease.id);
      return;
    }
    case "crash":
      for (const { id, first } of leasesOf(holdings))
        if (first.userId.endsWith(PEOPLE[event.person] ?? "")) machine.end(id);
      return;
    case "leave": {
      const gone = queue[event.which % Math.max(1, queue.length)];
      machine.change({ queue: queue.filter((one) => one !== gone) });
      return;
    }
    case "edit":
    case "delete-team": {
      disturb();
      machine.change({ quotas: edited(machine.world, event) });
      return;
    }
    case "lose":
    case "drain":
    case "back": {
      disturb();
      const state = ({ lose: "away", drain: "draining", back: "open" } as const)[event.do];
      machine.change({
        devices: devices.map((one) => (one.serverId === `s${event.server}` ? { ...one, state } : one)),
      });
      return;
    }
    case "reserve": {
      const made = reserved(machine.world, event, `v${String(index).padStart(2, "0")}`);
      if (made !== undefined) machine.change({ reservations: [...(machine.world.reservations ?? []), made] });
      return;
    }
    case "stop":
    case "lift":
      disturb();
      machine.change({ stops: stopped(machine.world, event) });
      return;
    case "wait":
      machine.advance(now + event.minutes * MINUTE);
      return;
    case "jump":
      disturb();
      machine.change({ now: Math.max(0, now + event.minutes * MINUTE) });
  }
}

/** A reservation in halves; nothing when the guarantees and what is reserved at that time leave no room for it. */
function reserved(
  { now, devices, quotas, reservations = [] }: World,
  event: Extract<Event, { do: "reserve" }>,
  id: string,
): Reservation | undefined {
  const teamId = TEAMS[event.team] ?? "";
  const milli = 500 * event.units;
  const { inMinutes, unitMilli = 500 } = event;
  const from =
    inMinutes === "after-the-last" ? Math.max(now, reservations.at(-1)?.to ?? now) : now + inMinutes * MINUTE;
  const to = from + event.minutes * MINUTE;
  const promised = sum([...quotas.values()].map(mostGuaranteed)) + mostReserved(reservations, from, to);
  if (!quotas.has(teamId) || promised + milli > devices.length * 1000) return undefined;
  const whose = event.person === undefined ? {} : { userId: `${teamId}-${PEOPLE[event.person]}` };
  return { id, teamId, milli, unitMilli, from, to, ...whose };
}

const sum = (amounts: readonly number[]) => amounts.reduce((total, one) => total + one, 0);

/** The most that is reserved at any time of a stretch. */
function mostReserved(reservations: readonly Reservation[], from: number, to: number): number {
  const at = (time: number) => reservations.filter((one) => one.from <= time && time < one.to);
  const times = [from, ...reservations.map((one) => one.from).filter((time) => time > from && time < to)];
  return Math.max(...times.map((time) => sum(at(time).map(({ milli }) => milli))));
}

/** The stops after one is made or lifted. */
function stopped({ stops = [] }: World, event: Extract<Event, { do: "stop" | "lift" }>): Stop[] {
  if (event.do === "lift") return stops.filter((_, index) => index !== event.which % Math.max(1, stops.length));
  const { scope } = event;
  const team = TEAMS[event.team] ?? "";
  const subjectId = { all: undefined, team, user: `${team}-${PEOPLE[event.person]}` }[scope];
  return [...stops, { scope, reason: "maintenance", ...(subjectId !== undefined && { subjectId }) }];
}

function edited(
  { quotas, devices, reservations = [] }: World,
  event: Extract<Event, { do: "edit" | "delete-team" }>,
): World["quotas"] {
  const teamId = TEAMS[event.team] ?? "";
  const next = new Map(quotas);
  if (event.do === "delete-team") {
    next.delete(teamId);
    return next;
  }
  const others = [...next.values()].filter((one) => one.teamId !== teamId);
  const promised = sum([...others.map(mostGuaranteed), mostReserved(reservations, 0, Number.MAX_SAFE_INTEGER)]);
  const left = Math.max(0, devices.length * 1000 - promised);
  // What exceeds the pool is refused at the edit.
  const guaranteedMilli = Math.min(event.guaranteedMilli, left);
  const limitMilli = Math.max(event.limitMilli, guaranteedMilli);
  next.set(teamId, {
    ...(next.get(teamId) ?? quota(teamId, 0, 0)),
    guaranteedMilli,
    limitMilli,
    personMilli: event.personMilli,
    calendar: undefined,
  });
  return next;
}
