/** Explanations of random worlds: nobody reads what is other teams' affair, and what they say is true. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fitsNow } from "./fits-now.ts";
import { evaluateQueue, judged } from "./queue.ts";
import { type Reader, seenBy } from "./seen-by.ts";
import { device, holding, quota, waiting, world } from "./testing.ts";
import type { Holding, Reservation, Stop, Waiting, World } from "./types.ts";
import { explainRules } from "./why.ts";

const TEAMS = ["vision", "nlp", "bio"] as const;
/** Who is in which teams; the last one is in two. */
const PEOPLE: Record<string, readonly string[]> = {
  ada: ["vision"],
  max: ["vision"],
  lin: ["nlp"],
  eve: ["bio"],
  kim: ["vision", "nlp"],
};
const NOW = 10_000_000;

/** A person in a team; what they are called there says of which team it tells. */
const person = fc
  .constantFrom(...Object.entries(PEOPLE).flatMap(([userId, teams]) => teams.map((teamId) => ({ userId, teamId }))))
  .map((one) => ({ ...one, who: `<${one.userId} of ${one.teamId}>` }));
const amount = fc.constantFrom(100, 250, 400, 500, 750, 1000);
const needs = fc.option(fc.constant({ zone: "a" }), { nil: undefined, freq: 4 });

type Asked = { request: Waiting; reader: Reader; seen: World };

const held = fc.record({
  ...{ person, amount, gpu: fc.nat(2), borrowed: fc.boolean(), guaranteedOnly: fc.boolean() },
  ...{ age: fc.nat(9_000_000), idle: fc.nat(900_000), left: fc.nat(7_000_000) },
});
const asked = fc.record({
  ...{ person, needs, milli: fc.oneof(amount, fc.constant(2000)), guaranteedOnly: fc.boolean() },
  ...{ since: fc.nat(1_000_000), kind: fc.constantFrom("interactive" as const, "batch" as const) },
  pinned: fc.option(fc.nat(2), { nil: undefined, freq: 6 }),
});
const reserved = fc.record({ person, milli: fc.constantFrom(250, 500), personal: fc.boolean() });
const stopped = fc.record({ scope: fc.constantFrom("all" as const, "team" as const, "user" as const), person });

const worlds: fc.Arbitrary<World> = fc
  .record({
    states: fc.array(fc.constantFrom("open" as const, "open" as const, "draining" as const, "away" as const), {
      ...{ minLength: 1, maxLength: 3 },
    }),
    quotas: fc.array(
      fc.record({
        ...{ guaranteed: amount, more: fc.nat(2000), personMilli: fc.option(amount, { nil: undefined }) },
        ...{ priority: fc.nat(1), coTenancy: fc.constantFrom("any" as const, "any" as const, "own-team" as const) },
      }),
      { minLength: 3, maxLength: 3 },
    ),
    holdings: fc.array(held, { maxLength: 8 }),
    queue: fc.array(asked, { minLength: 1, maxLength: 6 }),
    reservations: fc.array(reserved, { maxLength: 1 }),
    stops: fc.option(stopped, { nil: undefined, freq: 5 }),
    batchAt: fc.option(fc.integer({ min: NOW, max: NOW + 9_000_000 }), { nil: undefined, freq: 4 }),
  })
  .map(({ states, quotas, holdings, queue, reservations, stops, batchAt }) => {
    const devices = states.map((state, at) => device(String(at), { state, zone: at === 0 ? "a" : "b" }));
    return world({
      ...{ now: NOW, devices, holdings: placed(holdings, devices.length) },
      quotas: TEAMS.map((teamId, at) => {
        const { guaranteed = 0, more = 0, personMilli, ...rest } = quotas[at] ?? {};
        return quota(teamId, guaranteed, guaranteed + more, { ...rest, ...(personMilli && { personMilli }) });
      }),
      queue: queue.map(({ person: { userId, teamId, who }, since, pinned, needs: wants, ...rest }, at) =>
        waiting(`r${at}`, rest.milli, {
          ...{ ...rest, userId, teamId, who, createdAt: NOW - since, maxDevices: 2 },
          ...(wants && { needs: wants }),
          ...(pinned !== undefined && pinned < devices.length && rest.milli <= 1000 && { pinnedGpuId: String(pinned) }),
        }),
      ),
      reservations: reservations.map(
        ({ person: { userId, teamId, who }, milli, personal }, at): Reservation => ({
          ...{ id: `rsv${at}`, teamId, milli, unitMilli: milli, from: 0, to: NOW + 5_000_000 },
          ...(personal && { userId, who }),
        }),
      ),
      ...(stops && { stops: [stopOf(stops)] }),
      ...(batchAt && { open: { kinds: ["batch" as const], nextAt: batchAt } }),
    });
  });

/** Leases that lie on the devices without one too many. */
function placed(
  wanted: {
    person: { userId: string; teamId: string; who: string };
    amount: number;
    gpu: number;
    borrowed: boolean;
    guaranteedOnly: boolean;
    age: number;
    idle: number;
    left: number;
  }[],
  devices: number,
): Holding[] {
  const free = new Map<number, number>();
  return wanted.flatMap(({ person: { userId, teamId, who }, amount: milli, gpu, age, idle, left, ...rest }, at) => {
    const on = gpu % devices;
    const left_ = free.get(on) ?? 1000;
    if (left_ < milli) return [];
    free.set(on, left_ - milli);
    return [
      holding(`l${at}`, String(on), milli, {
        ...{ ...rest, userId, teamId, who, label: `<${at} of ${userId} in ${teamId}.ipynb>` },
        ...{ grantedAt: NOW - age, lastWorkAt: NOW - Math.min(idle, age), expiresAt: NOW + left },
      }),
    ];
  });
}

function stopOf({
  scope,
  person: { userId, teamId },
}: {
  scope: Stop["scope"];
  person: Waiting | { userId: string; teamId: string };
}): Stop {
  const subjectId = { all: undefined, team: teamId, user: userId }[scope];
  return { scope, reason: scope === "user" ? `<why ${userId}>` : "maintenance", ...(subjectId && { subjectId }) };
}

/** Everybody who may ask about it: those of its team. */
const readersOf = ({ teamId }: Waiting): Reader[] =>
  Object.entries(PEOPLE)
    .filter(([, teamIds]) => teamIds.includes(teamId))
    .map(([userId, teamIds]) => ({ userId, teamIds, seesAll: false }));

function everyAnswer(read: World, check: (why: ReturnType<typeof explainRules>, one: Asked) => void): void {
  const { world: seen, verdicts } = judged(read);
  for (const request of seen.queue) {
    for (const reader of readersOf(request)) {
      check(explainRules(request.requestId, seenBy(reader, seen), verdicts), { request, reader, seen });
    }
  }
}

describe("an explanation", () => {
  test("names nobody, no notebook and no reason that is other teams' or somebody's own affair", () => {
    fc.assert(
      fc.property(worlds, (read) => {
        everyAnswer(read, (why, { reader }) => {
          const text = JSON.stringify(why);
          for (const [, userId = "", teamId = ""] of text.matchAll(
            /<(?:\d+ of )?(\w+) (?:of|in) (\w+)(?:\.ipynb)?>/g,
          )) {
            expect(userId === reader.userId || reader.teamIds.includes(teamId), text).toBe(true);
          }
          for (const [, userId] of text.matchAll(/<why (\w+)>/g)) expect(userId, text).toBe(reader.userId);
        });
      }),
      { numRuns: 3000 },
    );
  });

  test("speaks to the reader as you only of what is theirs, and never of something unknown", () => {
    fc.assert(
      fc.property(worlds, (read) => {
        everyAnswer(read, ({ reason }, { request, reader, seen }) => {
          if (reason === null) return;
          const { message, holders = [], fitsNowMilli = 0 } = reason;
          expect(message).not.toMatch(/undefined|NaN|Infinity|\?|null/);
          if (request.userId !== reader.userId) expect(message).not.toMatch(/\byou\b|\bYour new\b/i);
          const [, asked = "1", free = "0"] = /No device has ([\d.]+) free: .* piece is ([\d.]+) /.exec(message) ?? [];
          expect(Number(free), message).toBeLessThan(Number(asked));
          const own = seen.holdings.filter(({ userId }) => userId === reader.userId).length;
          expect(holders.filter(({ who }) => who === "you").length).toBeLessThanOrEqual(own);
          expect(fitsNowMilli).toBeLessThanOrEqual(1000);
        });
      }),
      { numRuns: 2000 },
    );
  });

  test("estimates from what will happen: within its bounds, by a basis that is there, and not at all where nothing leads", () => {
    fc.assert(
      fc.property(worlds, (read) => {
        const granted = judged(read).verdicts.filter(({ state }) => state === "granted");
        everyAnswer(read, ({ reason, estimate }, { seen }) => {
          if (reason === null) return;
          if (reason.rule === "stopped" || reason.rule === "no-server") expect(estimate).toBeNull();
          if (estimate === null) return;
          const { lowSeconds, likelySeconds, highSeconds, basis } = estimate;
          expect(lowSeconds).toBeGreaterThanOrEqual(0);
          expect(lowSeconds).toBeLessThanOrEqual(likelySeconds);
          expect(likelySeconds).toBeLessThanOrEqual(highSeconds);
          expect(basis === "room is being made").toBe(reason.rule === "reclaim");
          expect(basis === "the calendar").toBe(reason.rule === "calendar");
          if (basis === "end times and idle limits" || basis === "the rate at which leases end") {
            expect(seen.holdings.length + granted.length).toBeGreaterThan(0);
          }
        });
      }),
      { numRuns: 2000 },
    );
  });

  describe("of requests for guaranteed GPUs only, while drained GPUs shrink the guarantee and no lease runs", () => {
    const shrunk = (drained: number) => {
      const devices = Array.from({ length: 1 + drained }, (_, at) =>
        device(String(at), { state: at === 0 ? "open" : "draining" }),
      );
      const request = (id: string, milli: number) => waiting(id, milli, { teamId: "nlp", guaranteedOnly: true });
      const queue = [request("large", 750), request("small", 100)];
      return world({
        devices,
        queue,
        quotas: [quota("vision", 100, 100), quota("nlp", 750, 750), quota("bio", 750, 750)],
      });
    };
    const answers = (read: World) => {
      const { world: seen, verdicts } = judged(read);
      const reader: Reader = { userId: "ada", teamIds: ["nlp"], seesAll: false };
      return ["small", "large"].map((id) => explainRules(id, seenBy(reader, seen), verdicts));
    };
    const noEstimates = [
      { position: 1, reason: { rule: "order" }, estimate: null },
      { position: 2, reason: { rule: "guaranteed" }, estimate: null },
    ];

    test("has no estimate: the small request waits behind the large one, which no end of a lease helps", () => {
      expect(answers(shrunk(1))).toMatchObject(noEstimates);
    });

    test("has no estimate from a rate at which leases end in a large pool either", () => {
      expect(answers(shrunk(120))).toMatchObject(noEstimates);
    });
  });

  test("says what would be granted now, and it would be; more would not", () => {
    fc.assert(
      fc.property(worlds, (read) => {
        const { world: seen } = judged(read);
        for (const request of seen.queue) {
          const said = fitsNow(request, seen);
          const granted = (milli: number) => {
            const instead = { ...request, milli, memoryBytes: 0, createdAt: Number.MAX_SAFE_INTEGER };
            const queue = [...read.queue.filter((one) => one.requestId !== request.requestId), instead];
            return evaluateQueue({ ...read, queue }).some(
              (one) => one.requestId === request.requestId && one.state === "granted",
            );
          };
          if (said > 0) expect(granted(said)).toBe(true);
          for (const more of [50, 100, 250, 400, 500, 600, 750, 1000]) {
            if (more > said) expect([more, granted(more)]).toEqual([more, false]);
          }
        }
      }),
      { numRuns: 1000 },
    );
  });
});
