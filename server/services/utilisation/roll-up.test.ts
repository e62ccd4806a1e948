/** Accounts by the hour on random histories: what is rolled up tells the same as the ledger and the samples, whatever is asked. */
import { sql } from "drizzle-orm";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { systemContext } from "#server/context.ts";
import type { Utilisation } from "#server/contracts/utilisation.ts";
import {
  deviceIntervals,
  leaseIntervals,
  leaseRequests,
  leases,
  usageHours,
  usageRollup,
  usageSamples,
  usageWeeks,
  waitDays,
} from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { recordUsage } from "#server/services/lease/record-usage.ts";
import { KEEP_SAMPLES_MS, sweepSamples } from "#server/services/lease/sweep-samples.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { account } from "./account.ts";
import { HOUR_S } from "./ledger.ts";
import { read } from "./read.ts";
import { rollUp } from "./roll-up.ts";

const HOUR = 3600_000;
const MINUTES = 100 * 60;
/** Begins in the middle of a day, and ends long enough ago to be over. */
const start = Math.floor((Date.now() - 130 * HOUR) / (24 * HOUR)) * 24 * HOUR + 7 * HOUR;
const at = (minute: number) => new Date(start + minute * 60_000);
const end = at(MINUTES);

let test: TestDatabase;
let world: World;
let workspaces: string[];

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
  workspaces = [
    (await makeWorkspace(world, { owner: world.member })).id,
    (await makeWorkspace(world, { owner: world.outsider, teamId: world.otherTeam })).id,
  ];
});
afterAll(() => test.drop());
beforeEach(forget);

/** Nothing has happened yet. */
async function forget(): Promise<void> {
  await test.db.execute(
    sql`truncate lease_requests, device_intervals, usage_hours, usage_team_hours, usage_days, usage_team_days, usage_weeks, pool_hours, wait_days cascade`,
  );
  await test.db.update(usageRollup).set({ rolledTo: new Date(Math.floor(Date.now() / HOUR) * HOUR) });
}

type Interval = { from: number; to: number };
type Lease = Interval & {
  gpu: 0 | 1;
  whose: 0 | 1;
  milli: number;
  borrowed: 0 | 1;
  /** Before it was granted, milliseconds. */
  waited: number;
  reports: [number, number][];
};
type State = { gpu: 0 | 1; state: "open" | "draining" | "lost" } & Interval;
type History = { leases: Lease[]; states: State[] };

const minute = fc.integer({ min: 0, max: MINUTES });
const history: fc.Arbitrary<History> = fc.record({
  leases: fc.array(
    fc.record({
      ...{ gpu: fc.constantFrom(0 as const, 1 as const), whose: fc.constantFrom(0 as const, 1 as const) },
      // Twelve of them fit one device at once.
      ...{ milli: fc.integer({ min: 1, max: 83 }), borrowed: fc.constantFrom(0 as const, 1 as const) },
      ...{ from: minute, to: minute, waited: fc.integer({ min: 0, max: 900_000 }) },
      /** When gpud reports, as a part of the lease's time, and GPU seconds since the report before. */
      reports: fc.array(fc.tuple(fc.integer({ min: 0, max: 99 }), fc.integer({ min: 0, max: 9000 })), { maxLength: 6 }),
    }),
    { minLength: 1, maxLength: 12 },
  ),
  /** Where each device changes to another state: one after the other. */
  states: fc.tuple(fc.uniqueArray(minute, { maxLength: 6 }), fc.uniqueArray(minute, { maxLength: 6 })).map(([a, b]) =>
    ([a, b] as const).flatMap((cuts, gpu) => {
      const sorted = [0, ...cuts.sort((x, y) => x - y), MINUTES];
      return sorted.slice(1).map((to, index) => ({
        ...{ gpu: gpu as 0 | 1, from: sorted[index] ?? 0, to },
        state: (["open", "draining", "lost"] as const)[index % 3] ?? "open",
      }));
    }),
  ),
});

/** Writes a history as the product does: gpud's reports go the way of every report. */
async function write({ leases: all, states }: History): Promise<void> {
  const intervals = states.filter(({ from, to }) => from < to);
  for (const { gpu, state, from, to } of intervals) {
    const gpuId = world.gpuIds[gpu];
    await test.db.insert(deviceIntervals).values({ gpuId, state, startedAt: at(from), endedAt: at(to) });
  }
  for (const lease of all) {
    if (lease.from >= lease.to) continue;
    const [id, requestId] = [newId("lea"), newId("req")];
    const owner = { kind: "process" as const, pid: 1, startTime: 1 };
    const whose = lease.whose === 0 ? world.member : world.outsider;
    const teamId = lease.whose === 0 ? world.team : world.otherTeam;
    const shared = { workspaceId: workspaces[lease.whose] ?? "", teamId, userId: whose.id, gpuType: "soft", owner };
    const [begins, ends] = [at(lease.from), at(lease.to)];
    await test.db.insert(leaseRequests).values({
      ...{ ...shared, id: requestId, idempotencyKey: requestId, state: "granted", milli: lease.milli, memoryBytes: 1 },
      ...{
        createdAt: new Date(begins.getTime() - lease.waited),
        decidedAt: begins,
        lastPolledAt: begins,
        waitUntil: begins,
      },
    });
    await test.db.insert(leases).values({
      ...{ ...shared, id, requestId, gpuId: world.gpuIds[lease.gpu], serverId: world.serverId, milli: lease.milli },
      ...{ memoryBytes: 1, state: "active", epoch: 1, borrowed: lease.borrowed, grantedAt: begins },
      ...{ ownerSeenAt: ends, expiresAt: ends, endedAt: ends },
    });
    await test.db.insert(leaseIntervals).values({
      ...{ leaseId: id, teamId, userId: whose.id, gpuId: world.gpuIds[lease.gpu], gpuType: "soft" },
      ...{ milli: lease.milli, startedAt: begins, endedAt: ends },
    });
    let gpuTimeUs = 0;
    const smActivity = { activeUs: 0, knownUs: 0, estimatedUs: 0 };
    for (const [part, seconds] of lease.reports.sort(([a], [b]) => a - b)) {
      gpuTimeUs += seconds * 1e6;
      // Of every third report gpud does not know how active multiprocessors were, of every second it estimates it.
      const active = seconds % 3 === 0 ? 0 : (seconds % 100) * seconds * 1e4;
      smActivity.activeUs += active;
      smActivity.knownUs += seconds % 3 === 0 ? 0 : seconds * 1e6;
      smActivity.estimatedUs += seconds % 2 === 0 ? active : 0;
      const when = new Date(begins.getTime() + ((ends.getTime() - begins.getTime()) * part) / 100);
      const measured = { gpuTimeUs, deliveredUs: gpuTimeUs / 2, promisedUs: gpuTimeUs / 2, calls: 1, memoryBytes: 1 };
      const none = { bytesIn: 0, bytesOut: 0, parkedBytes: 0, running: null };
      const usage = { leaseId: id, sessions: 1, ...none, ...measured, smActivity: { ...smActivity } };
      await recordUsage(systemContext(test.db, { now: () => when }), { serverId: world.serverId, usages: [usage] });
    }
  }
}

type Effect = { effective: number; known: number; estimated: number };
type Sums = Effect & { used: number; held: number; borrowed: number; wall: number; waits: Wait[] };
type Wait = { seconds: number; teamId: string; userId: string; workspaceId: string; gpuType: string };

/** The same account in plain loops over the history, from the rows of single samples. */
async function expected(from: Date, to: Date): Promise<Sums> {
  const [requests, states, intervals, samples] = await Promise.all([
    test.db.select().from(leaseRequests),
    test.db.select().from(deviceIntervals),
    test.db
      .select({ interval: leaseIntervals, borrowed: leases.borrowed })
      .from(leaseIntervals)
      .innerJoin(leases, sql`true`)
      .where(sql`${leases.id} = ${leaseIntervals.leaseId}`),
    test.db.select().from(usageSamples),
  ]);
  const overlap = (...parts: { from: number; to: number }[]) =>
    Math.max(0, Math.min(...parts.map((part) => part.to)) - Math.max(...parts.map((part) => part.from)));
  const of = (row: { startedAt: Date; endedAt: Date | null }) => ({
    ...{ from: row.startedAt.getTime(), to: row.endedAt?.getTime() ?? Date.now() },
  });
  const span = { from: from.getTime(), to: to.getTime() };
  const sums = { used: 0, held: 0, borrowed: 0, wall: 0, effective: 0, known: 0, estimated: 0 };
  const waits = requests.flatMap(({ createdAt, decidedAt, ...rest }): Wait[] =>
    decidedAt === null || decidedAt < from || decidedAt >= to
      ? []
      : [{ ...rest, seconds: (decidedAt.getTime() - createdAt.getTime()) / 1000 }],
  );
  for (const state of states) sums.wall += overlap(of(state), span);
  for (const { interval, borrowed } of intervals) {
    const on = states.filter((state) => state.gpuId === interval.gpuId);
    for (let hour = Math.floor(start / HOUR) * HOUR; hour < end.getTime(); hour += HOUR) {
      const whole = { from: hour, to: hour + HOUR };
      const all = on.reduce((sum, state) => sum + overlap(of(state), of(interval), whole), 0);
      const inside = on.reduce((sum, state) => sum + overlap(of(state), of(interval), whole, span), 0);
      if (inside === 0) continue;
      const ofHour = samples.filter(
        ({ leaseId, at: when }) =>
          leaseId === interval.leaseId && overlap(whole, { from: when.getTime(), to: when.getTime() + 1 }) > 0,
      );
      const sumOf = (key: "gpuTimeUs" | "smActiveUs" | "smKnownUs" | "smEstimatedUs") =>
        ofHour.reduce((sum, sample) => sum + sample[key] / 1000, 0);
      const work = sumOf("gpuTimeUs");
      sums.held += (interval.milli / 1000) * inside;
      sums.borrowed += (interval.milli / 1000) * inside * borrowed;
      sums.used += (interval.milli / 1000) * inside * Math.min(1, work / all);
      const known = Math.min(1, work / all) * Math.min(1, sumOf("smKnownUs") / Math.max(0.001, work));
      const effective = Math.min(known, sumOf("smActiveUs") / all);
      sums.known += (interval.milli / 1000) * inside * known;
      sums.effective += (interval.milli / 1000) * inside * effective;
      sums.estimated +=
        ((interval.milli / 1000) * inside * effective * sumOf("smEstimatedUs")) / Math.max(0.001, sumOf("smActiveUs"));
    }
  }
  return {
    used: sums.used / HOUR,
    held: sums.held / HOUR,
    borrowed: sums.borrowed / HOUR,
    wall: sums.wall / HOUR,
    ...{ effective: sums.effective / HOUR, known: sums.known / HOUR, estimated: sums.estimated / HOUR },
    waits,
  };
}

/** The value at a place of the sorted ones, between two of them in proportion. */
function quantile(waits: Wait[], part: number): number | null {
  const sorted = waits.map(({ seconds }) => seconds).sort((a, b) => a - b);
  const place = part * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return low === undefined || high === undefined ? null : low + (high - low) * (place % 1);
}

const nearly = (wanted: number | null) => (wanted === null ? null : (expect.closeTo(wanted, 6) as number));
const waitsOf = (waits: Wait[]) => ({
  grants: waits.length,
  waitMedian: nearly(quantile(waits, 0.5)),
  waitP95: nearly(quantile(waits, 0.95)),
});

type By = "team" | "person" | "workspace" | "type";
const keyOf = { team: "teamId", person: "userId", workspace: "workspaceId", type: "gpuType" } as const;

function close(answer: Utilisation, sums: Sums, by: By = "team"): void {
  expect(answer).toMatchObject(waitsOf(sums.waits));
  for (const row of answer.rows) {
    expect(row).toMatchObject(waitsOf(sums.waits.filter((wait) => wait[keyOf[by]] === row.id)));
  }
  const { used, heldIdle, free, draining, lost } = answer.total;
  expect(used).toBeCloseTo(sums.used, 6);
  expect(used + heldIdle).toBeCloseTo(sums.held, 6);
  expect(answer.rows.reduce((sum, row) => sum + row.used, 0)).toBeCloseTo(sums.used, 6);
  expect(answer.rows.reduce((sum, row) => sum + row.used + row.heldIdle, 0)).toBeCloseTo(sums.held, 6);
  expect(answer.rows.reduce((sum, row) => sum + row.borrowed, 0)).toBeCloseTo(sums.borrowed, 6);
  const { effective, effectiveKnown, effectiveEstimated } = answer.total;
  expect(effective).toEqual(sums.used > 0 && sums.known === 0 ? null : nearly(sums.effective));
  expect(effectiveKnown).toBeCloseTo(sums.known, 6);
  expect(effectiveEstimated).toBeCloseTo(sums.estimated, 6);
  expect(effective ?? 0).toBeLessThanOrEqual(effectiveKnown + 1e-9);
  expect(effectiveKnown).toBeLessThanOrEqual(used + 1e-9);
  for (const parts of [answer.rows, answer.bins]) {
    expect(parts.reduce((sum, part) => sum + (part.effective ?? 0), 0)).toBeCloseTo(sums.effective, 6);
    expect(parts.reduce((sum, part) => sum + part.effectiveKnown, 0)).toBeCloseTo(sums.known, 6);
    expect(parts.reduce((sum, part) => sum + part.effectiveEstimated, 0)).toBeCloseTo(sums.estimated, 6);
  }
  expect(used + heldIdle + free + draining + lost).toBeCloseTo(sums.wall, 6);
}

/** Pages are made of this account: in thousandths of a GPU times microseconds its parts are whole numbers, and sum to wall time exactly. */
async function addsUp(from: Date, to: Date): Promise<void> {
  const { held, pool } = await account(world.admin.ctx, { from, to }, {}, HOUR_S, "team");
  const rows = await test.db.execute<{ state: string; wall: string; held: string; used: string }>(sql`
    select state, wall * 1000 as wall, coalesce(held, 0) as held, coalesce(used, 0) as used
    from (select state, sum(wall) as wall from ${pool} p group by 1) p
      left join (select state, sum(held) as held, sum(used) as used from ${held} h group by 1) h using (state)`);
  const span = { from: from.getTime(), to: to.getTime() };
  const within = ({ startedAt, endedAt }: { startedAt: Date; endedAt: Date | null }) =>
    BigInt(Math.max(0, Math.min(endedAt?.getTime() ?? 0, span.to) - Math.max(startedAt.getTime(), span.from))) * 1000n;
  const states = await test.db.select().from(deviceIntervals);
  const intervals = await test.db.select().from(leaseIntervals);
  const wall = states.reduce((sum, one) => sum + within(one) * 1000n, 0n);
  const leased = intervals.reduce((sum, one) => sum + within(one) * BigInt(one.milli), 0n);
  const parts = rows.map((row) => ({ wall: BigInt(row.wall), held: BigInt(row.held), used: BigInt(row.used) }));
  for (const part of parts) {
    // Leased (used, or held idle), and what of a device in this state is not.
    expect(part.used >= 0n && part.used <= part.held && part.held <= part.wall).toBe(true);
  }
  expect(parts.reduce((sum, part) => sum + part.held, 0n)).toBe(leased);
  expect(parts.reduce((sum, part) => sum + part.wall, 0n)).toBe(wall);
}

/** Who is asked for alone has what the row of all tells. */
async function closeAlone(all: Utilisation, span: { from: string; to: string }, by: "person" | "workspace") {
  for (const { id, used, heldIdle, borrowed, grants, waitMedian } of all.rows) {
    const filter = by === "person" ? { userId: id } : { workspaceId: id };
    const alone = await read(world.admin.ctx, { ...span, ...filter });
    expect(alone).toMatchObject({ grants, waitMedian: nearly(waitMedian), borrowed: nearly(borrowed) });
    expect(alone.total.used).toBeCloseTo(used, 6);
    expect(alone.total).toMatchObject({ heldIdle: nearly(heldIdle), free: 0, lost: 0 });
  }
}

/** A day's waits stand in no order. */
const sorted = (days: (typeof waitDays.$inferSelect)[]) =>
  days.map(({ waits, ...day }) => ({
    ...day,
    waits: Array.from({ length: waits.length / 4 }, (_, at) => waits.readInt32BE(4 * at)).sort((a, b) => a - b),
  }));

const rollAll = async (now = new Date()) => {
  while (await rollUp(systemContext(test.db, { now: () => now })));
};

describe("hours that are rolled up", () => {
  it("tell the same as the ledger and the samples, for any span and however far they are made", async () => {
    const spans = fc.array(fc.tuple(minute, minute, fc.boolean()), { minLength: 2, maxLength: 2 });
    await fc.assert(
      fc.asyncProperty(history, spans, minute, async (past, asked, half) => {
        await forget();
        await write(past);
        const check = async () => {
          for (const [a, b, byHour] of [...asked, [0, MINUTES, true] as const]) {
            const unit = byHour ? HOUR : 60_000;
            const [from, to] = [at(Math.min(a, b)), at(Math.max(a, b))].map(
              (one) => new Date(Math.floor(one.getTime() / unit) * unit),
            );
            if (from === undefined || to === undefined || from >= to) continue;
            for (const by of ["team", "person", "workspace", "type"] as const) {
              const span = { from: from.toISOString(), to: to.toISOString() };
              if (by === "team") await addsUp(from, to);
              const answer = await read(world.admin.ctx, { ...span, by });
              close(answer, await expected(from, to), by);
              if (by === "person" || by === "workspace") await closeAlone(answer, span, by);
            }
          }
        };
        await check();
        await rollAll(at(half));
        await check();
        await rollAll();
        await check();
        const made = await test.db.select().from(usageHours);
        const waits = await test.db.select().from(waitDays);
        await test.db.update(usageRollup).set({ rolledTo: at(half) });
        await test.db.execute(
          sql`update usage_rollup set rolled_to = date_bin('1 hour', rolled_to, timestamptz 'epoch')`,
        );
        await rollAll();
        const again = await test.db.select().from(usageHours);
        const order = (rows: unknown[]) => rows.map((row) => JSON.stringify(row)).sort();
        expect(order(again)).toEqual(order(made));
        expect(order(sorted(await test.db.select().from(waitDays)))).toEqual(order(sorted(waits)));
      }),
      {
        numRuns: 4,
      },
    );
  }, 180_000);
});

describe("weeks", () => {
  it("tell of persons and workspaces what the ledger tells, wherever a span begins and ends", async () => {
    const DAY = 24 * 60;
    const bit = (n: number) => (n % 2 === 0 ? 0 : 1);
    await write({
      leases: Array.from({ length: 28 }, (_, n) => ({
        ...{ gpu: bit(n), whose: bit(n >> 1), milli: 250 + n, borrowed: bit(n >> 2), waited: 0 },
        ...{ from: (n - 28) * DAY + 60 * n, to: (n - 28) * DAY + 61 * n + 300, reports: [[50, 600 * n]] },
      })),
      states: [0, 1].map((gpu) => ({ gpu: bit(gpu), state: "open", from: -30 * DAY, to: MINUTES })),
    });
    const ask = async () => {
      const answers = [];
      for (const [from, to] of [
        [-30, 0],
        [-21.3, -2.7],
        [-9, 1],
      ] as const) {
        const span = { from: at(from * DAY).toISOString(), to: at(to * DAY).toISOString() };
        for (const by of ["person", "workspace"] as const) {
          const all = await read(world.admin.ctx, { ...span, by });
          const soft = await read(world.admin.ctx, { ...span, by, gpuType: "soft" });
          expect(soft.rows).toEqual(all.rows);
          answers.push(all.rows);
        }
      }
      return answers;
    };
    const fromLedger = await ask();
    await rollAll();
    expect(await test.db.select().from(usageWeeks)).not.toHaveLength(0);
    expect(await ask()).toEqual(fromLedger);
  }, 120_000);
});

describe("the mark", () => {
  const one: History = {
    leases: [{ gpu: 0, whose: 0, milli: 500, borrowed: 0, waited: 7000, from: 60, to: 600, reports: [[10, 100]] }],
    states: [{ gpu: 0, state: "open", from: 0, to: MINUTES }],
  };

  it("is turned back by whatever changes the ledger before it, and by nothing else", async () => {
    await write(one);
    await rollAll();
    const mark = async () => (await test.db.select().from(usageRollup))[0]?.rolledTo.getTime();
    const all = await mark();
    await test.db.update(leaseIntervals).set({ milli: 500 });
    expect(await mark()).toBe(all);
    const [gpuId] = world.gpuIds;
    await test.db.insert(deviceIntervals).values({ gpuId, state: "open", startedAt: new Date() });
    expect(await mark()).toBe(all);
    await test.db.update(leaseIntervals).set({ endedAt: at(125) });
    expect(await mark()).toBe(at(120).getTime());
    close(
      await read(world.admin.ctx, { from: at(0).toISOString(), to: end.toISOString() }),
      await expected(at(0), end),
    );
    await rollAll();
    expect(await mark()).toBe(all);
    close(
      await read(world.admin.ctx, { from: at(0).toISOString(), to: end.toISOString() }),
      await expected(at(0), end),
    );
  });

  it("is turned back by a grant that is written or changed before it", async () => {
    await write(one);
    await rollAll();
    const mark = async () => (await test.db.select().from(usageRollup))[0]?.rolledTo.getTime();
    const all = await mark();
    await test.db.update(leaseRequests).set({ lastPolledAt: new Date(), decidedAt: at(60) });
    expect(await mark()).toBe(all);
    await test.db.update(leaseRequests).set({ createdAt: at(50) });
    expect(await mark()).toBe(at(60).getTime());
    await rollAll();
    close(
      await read(world.admin.ctx, { from: at(-7 * 60).toISOString(), to: end.toISOString() }),
      await expected(at(-7 * 60), end),
    );
    await test.db.update(leaseRequests).set({ decidedAt: at(120) });
    expect(await mark()).toBe(at(60).getTime());
  });

  it("leaves out the hour that is not settled", async () => {
    await write(one);
    await rollAll(new Date(at(180).getTime() + 4 * 60_000));
    expect((await test.db.select().from(usageRollup))[0]?.rolledTo).toEqual(at(120));
    await rollAll(new Date(at(180).getTime() + 5 * 60_000));
    expect((await test.db.select().from(usageRollup))[0]?.rolledTo).toEqual(at(180));
  });
});

describe("single samples", () => {
  it("go after two days, and what they said of their hour stays", async () => {
    await write({
      leases: [{ gpu: 0, whose: 0, milli: 1000, borrowed: 0, waited: 0, from: 0, to: 60, reports: [[50, 600]] }],
      states: [{ gpu: 0, state: "open", from: 0, to: MINUTES }],
    });
    const ask = () => read(world.admin.ctx, { from: at(0).toISOString(), to: at(120).toISOString() });
    const before = await ask();
    expect(before.total.used).toBeCloseTo(1 / 6, 6);
    const sweep = (ms: number) => sweepSamples(systemContext(test.db, { now: () => new Date(ms) }));
    await sweep(at(30).getTime() + KEEP_SAMPLES_MS);
    expect(await test.db.select().from(usageSamples)).toHaveLength(1);
    await sweep(at(30).getTime() + KEEP_SAMPLES_MS + 1);
    expect(await test.db.select().from(usageSamples)).toHaveLength(0);
    expect((await ask()).total).toEqual(before.total);
  });
});
