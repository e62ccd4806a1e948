/**
 * A history that the production scheduler made in virtual time, in real rows: played again on the same pool it comes out
 * as it was, and on a larger one nobody waits longer.
 */
import { and, eq, isNull, lte, ne } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Context, systemContext } from "#server/context.ts";
import { whatIfResult } from "#server/contracts/what-if.ts";
import { gpuPrices, gpus, leaseRequests, leases, quotas, whatIfs } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import type { Device } from "#server/scheduler/types.ts";
import { advanceQueue, type Fresh } from "#server/services/lease/advance.ts";
import { requestRow } from "#server/services/lease/asking.ts";
import { closeLeases } from "#server/services/lease/ending.ts";
import { settleUsage } from "#server/services/lease/settle-usage.ts";
import { withTypeLock } from "#server/services/lease/with-type-lock.ts";
import { makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { ask } from "./ask.ts";
import { costOf } from "./cost.ts";
import { demandOf } from "./demand.ts";
import { get } from "./get.ts";
import { readPresent } from "./present.ts";
import { type Logged, readLog } from "./read-log.ts";
import { type ReplayInput, replay } from "./replay.ts";
import { devicesOf } from "./setting.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** A Monday at midnight, well in the past: everything that is asked for is over. */
const start = Math.floor((Date.now() - 12 * DAY) / (7 * DAY)) * 7 * DAY + 4 * DAY - 7 * DAY;
let clock = start;

let test: TestDatabase;
let world: World;
let input: ReplayInput;

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
  await test.db.insert(gpus).values(
    [2, 3].map((index) => ({
      ...{ id: newId("gpu"), serverId: world.serverId, uuid: `GPU-more-${index}`, name: `soft-${index}` },
      ...{ gpuType: "soft", model: "Software GPU", computeCapability: "7.5", memoryBytes: 8 * 2 ** 30 },
      ...{ state: "active" as const, profile: {} },
    })),
  );
  await test.db.update(quotas).set({ guaranteedMilli: 1500, limitMilli: 4000 }).where(eq(quotas.teamId, world.team));
  await test.db
    .update(quotas)
    .set({ guaranteedMilli: 1000, limitMilli: 4000 })
    .where(eq(quotas.teamId, world.otherTeam));
  await makeHistory();
  const time = { from: start, to: start + 2 * DAY };
  const [present] = await readPresent(world.system, ["soft"], time);
  if (present === undefined) throw new Error("the type is there");
  const log = await readLog(world.system, "soft", time, 1000);
  const proposal = { gpus: 4, quotas: new Map() };
  input = { ...present, time, now: clock, log, teamNames: new Map([[world.team, "vision"]]), proposal };
}, 60_000);
afterAll(() => test.drop());

/** Two days of 130 requests: most wait for a while, some leave, some are taken back, a few ask for what is never granted. */
async function makeHistory(): Promise<void> {
  const ctx: Context = systemContext(test.db, { now: () => new Date(clock) });
  const random = randomOf(11);
  const people: { person: Person; teamId: string; workspaceId: string }[] = [];
  for (const person of [world.lead, world.member, world.colleague]) {
    people.push({ person, teamId: world.team, workspaceId: (await makeWorkspace(world, { owner: person })).id });
  }
  const { outsider, otherTeam } = world;
  people.push({
    ...{ person: outsider, teamId: otherTeam },
    workspaceId: (await makeWorkspace(world, { owner: outsider, teamId: otherTeam })).id,
  });
  const asks = Array.from({ length: 130 }, (_, index) => ({
    at: start + Math.floor(random() * 2 * DAY),
    who: people[Math.floor(random() * people.length * 1.5) % people.length] ?? people[0],
    milli: index % 40 === 39 ? 9000 : ([250, 500, 500, 1000, 1000, 2000][Math.floor(random() * 6)] ?? 500),
    holdMs: Math.floor(Math.exp(Math.log(70) + (random() - 0.5) * 3) * MINUTE),
    patienceMs: random() < 0.15 ? Math.floor(random() * 40 * MINUTE) + 1 : DAY,
    pid: index + 1,
  })).sort((a, b) => a.at - b.at);
  const holds = new Map<string, number>();
  const leaves = new Map<string, number>();
  for (;;) {
    const open = await test.db.select().from(leases).where(ne(leases.state, "ended"));
    const endOf = (lease: (typeof open)[number]) =>
      Math.min(lease.grantedAt.getTime() + (holds.get(lease.requestId) ?? 0), lease.releaseAt?.getTime() ?? Infinity);
    const next = Math.min(asks[0]?.at ?? Infinity, ...open.map(endOf), ...leaves.values());
    if (next === Number.POSITIVE_INFINITY) return;
    clock = next;
    for (const reason of ["given back", "taken back"] as const) {
      const over = open.filter((lease) => endOf(lease) <= clock && reason === reasonOf(lease, holds));
      await closeLeases(
        test.db,
        over.map((lease) => ({ by: ctx, leaseId: lease.id })),
        { reason, mode: "kill" },
      );
    }
    for (const [id, at] of leaves) {
      if (at > clock) continue;
      leaves.delete(id);
      const gone = and(eq(leaseRequests.id, id), eq(leaseRequests.state, "queued"));
      await test.db
        .update(leaseRequests)
        .set({ state: "expired", decidedAt: new Date(clock) })
        .where(gone);
    }
    const fresh: Fresh[] = [];
    while (asks[0] !== undefined && asks[0].at <= clock) {
      const one = asks.shift();
      if (one?.who === undefined) continue;
      const { person, teamId, workspaceId } = one.who;
      const principal = { kind: "workspace" as const, workspaceId, teamId, userId: person.id };
      const asked = {
        ...{ ctx: { ...ctx, principal }, principal, who: person.name, longestSeconds: 7 * 86_400, needs: null },
        amount: { kind: "compute" as const, milli: one.milli },
        input: {
          ...{ requestId: newId("req"), amount: "1", guaranteed: false, waitSeconds: 86_400, forSeconds: 14_400 * 4 },
          ...{
            owner: { kind: "kernel" as const, pid: one.pid, startTime: 1 },
            priority: "normal" as const,
            maxDevices: 8,
          },
        },
      };
      const row = requestRow(asked, "soft", { milli: one.milli, memoryBytes: 0 });
      holds.set(row.id, one.holdMs);
      if (one.patienceMs < DAY) leaves.set(row.id, clock + one.patienceMs);
      fresh.push({ row, who: person.name, waits: true, entry: { by: ctx, input: { action: "lease.request" } } });
    }
    await withTypeLock(ctx, "soft", (tx) => advanceQueue(tx, "soft", { arrivals: () => fresh }));
    await settleUsage(ctx);
  }
}

const reasonOf = (lease: typeof leases.$inferSelect, holds: ReadonlyMap<string, number>) =>
  lease.grantedAt.getTime() + (holds.get(lease.requestId) ?? 0) <= clock ? "given back" : "taken back";

function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}

describe("the log played again", () => {
  it("comes out as it was on the same pool: waits within 2 % or a second, time held within 1 %", () => {
    const { logged, now, proposed, assumed } = replay(input);
    expect(assumed).toMatchObject({ asked: 130, carried: 0 });
    expect(logged.gaveUp).toBeGreaterThan(2);
    expect(logged.reclaimed).toBeGreaterThan(0);
    expect(logged.waitP95).toBeGreaterThan(600);
    for (const key of ["waitP50", "waitP95", "waitP99"] as const) {
      const was = logged[key] ?? 0;
      expect(Math.abs((now[key] ?? 0) - was), key).toBeLessThanOrEqual(Math.max(1, was * 0.02));
    }
    expect([now.granted, now.gaveUp, now.refused]).toEqual([logged.granted, logged.gaveUp, logged.refused]);
    expect(Math.abs(now.heldHours - logged.heldHours)).toBeLessThan(logged.heldHours * 0.01);
    expect(now.reclaimed).toBe(logged.reclaimed);
    expect(proposed).toEqual(now);
  });

  it("never makes anybody wait longer on a larger pool", () => {
    const sizes = [3, 4, 5, 6, 8, 16];
    const waits = sizes.map((size) => replay({ ...input, proposal: { gpus: size, quotas: new Map() } }).proposed);
    for (const key of ["waitP50", "waitP95", "waitP99"] as const) {
      const values = waits.map((one) => one[key] ?? 0);
      expect(values, key).toEqual([...values].sort((a, b) => b - a));
    }
    expect(waits[0]?.waitP95).toBeGreaterThan(waits.at(-1)?.waitP95 ?? 0);
  });

  it("gives a team more promptly what is guaranteed to it, at the others' cost", () => {
    const more = new Map([[world.otherTeam, { guaranteedMilli: 0, limitMilli: 1000 }]]);
    const { teams } = replay({ ...input, proposal: { gpus: 4, quotas: more } });
    const theirs = teams.find(({ teamId }) => teamId === world.otherTeam);
    expect(theirs?.proposed).toMatchObject({ guaranteedMilli: 0, limitMilli: 1000 });
    // Those who ask for more than the limit are refused and wait no longer: of the rest the middle one tells.
    expect(theirs?.proposed.waitP50).toBeGreaterThan(theirs?.now.waitP50 ?? 0);
    expect(theirs?.proposed.heldHours).toBeLessThan((theirs?.now.heldHours ?? 0) / 2);
  });

  it("counts what ran and waited when the time began, and only what was asked in it", async () => {
    const time = { from: start + DAY, to: start + 2 * DAY };
    const log = await readLog(world.system, "soft", time, 1000);
    const { now, logged, assumed } = replay({ ...input, time, log });
    expect(assumed.carried).toBeGreaterThan(0);
    expect(assumed.asked + assumed.carried).toBe(log.length);
    expect(now.granted + now.gaveUp + now.refused).toBe(assumed.asked);
    // What ran lies on other devices at the beginning, so that this is not exact.
    expect(Math.abs(now.heldHours - logged.heldHours)).toBeLessThan(logged.heldHours * 0.1);
  });
});

describe("what is assumed of the log", () => {
  const row = (id: string, at: number, more: Partial<Logged> = {}): Logged => ({
    ...{ id, owner: "one", teamId: "t", userId: "u", milli: 500, memoryBytes: 0, guaranteedOnly: 0, rank: 0 },
    ...{ kind: "interactive", maxDevices: 1, needs: null, forSeconds: 14_400, state: "granted", createdAt: at },
    ...{ decidedAt: at, waitUntil: at + 120_000, heldMilli: 500, grantedAt: at, endedAt: at + 600_000 },
    ...{ expiresAt: at + 14_400_000, endReason: "given back", ...more },
  });
  const none = { grantedAt: null, endedAt: null, heldMilli: null, expiresAt: null, endReason: null };
  const time = { from: 0, to: DAY };

  it("asks once for whoever asked again, for as long as they had it then", () => {
    const log = [
      row("a", 0, { state: "expired", decidedAt: 120_000, ...none }),
      row("b", 300_000, { endedAt: 300_000 + 7_000_000 }),
    ];
    const { demands, assumed } = demandOf(log, time, DAY);
    expect(demands).toMatchObject([
      { id: "a", patienceMs: 120_000, holdMs: 7_000_000 },
      { id: "b", retryOf: "a" },
    ]);
    expect(assumed).toMatchObject({ asked: 2, retries: 1, lengthGuessed: 0 });
  });

  it("takes the team's median where a length is not known, and never less than there was", () => {
    const log = [
      row("a", 0),
      row("b", 0, { owner: "two", endedAt: 1000, endReason: "taken back" }),
      row("c", 0, { owner: "three", endedAt: 9_000_000, endReason: "server lost" }),
      row("d", 0, { owner: "four", state: "refused", waitUntil: 0, ...none }),
    ];
    const { demands, assumed } = demandOf(log, time, DAY);
    expect(demands.map(({ holdMs }) => holdMs)).toEqual([600_000, 600_000, 9_000_000, 600_000]);
    expect(demands[3]).toMatchObject({ patienceMs: 0 });
    expect(assumed.lengthGuessed).toBe(3);
  });

  it("puts more devices like those that are there on more servers, and takes the last away", () => {
    const device = (id: string, serverId: string): Device => ({
      ...{ id, name: id, serverId, serverName: serverId, memoryBytes: 5, state: "draining" },
    });
    const present = [device("a", "s1"), device("b", "s1")];
    expect(devicesOf(present, 1)).toMatchObject([{ id: "a", state: "open" }]);
    expect(devicesOf(present, 5).map(({ serverId }) => serverId)).toEqual(["s1", "s1", "new-0", "new-0", "new-1"]);
    expect(devicesOf(present, 3)[2]).toMatchObject({ memoryBytes: 5 });
  });

  it("costs by the hour, or in proportion to the hardware that is paid by the month", () => {
    const november = { from: Date.UTC(2026, 10, 1), to: Date.UTC(2026, 11, 1) };
    expect(costOf({ basis: "hour", micro: 2_000_000 }, 2, 1, november)).toBe(2 * 720 * 200);
    expect(costOf({ basis: "month", micro: 900_000_000 }, 6, 4, november)).toBe(135_000);
    expect(costOf(undefined, 2, 1, november)).toBeNull();
  });
});

describe("the question", () => {
  const question = () => ({
    from: new Date(start).toISOString(),
    to: new Date(start + 2 * DAY).toISOString(),
    types: [{ gpuType: "soft", gpus: 8 }],
  });

  it("is answered by a thread, once for the same log, and again when a price has changed", async () => {
    const asked = await ask(world.admin.ctx, question());
    expect(asked.state).toBe("running");
    expect((await ask(world.admin.ctx, question())).id).toBe(asked.id);
    await expect
      .poll(async () => (await get(world.admin.ctx, { id: asked.id })).state, { timeout: 20_000 })
      .toBe("done");
    const { result } = await get(world.admin.ctx, { id: asked.id });
    const [type] = whatIfResult.parse(result).types;
    expect(type?.now.waitP95).toBe(replay(input).now.waitP95);
    expect(type?.proposed.gpus).toBe(8);
    expect(type?.now.cents).toBeNull();
    expect(await ask(world.admin.ctx, question())).toMatchObject({ id: asked.id, state: "done" });
    await test.db.insert(gpuPrices).values({ gpuType: "soft", basis: "hour", micro: 1_000_000, changedAt: new Date() });
    const again = await ask(world.admin.ctx, question());
    expect(again.id).not.toBe(asked.id);
    await expect
      .poll(async () => (await get(world.admin.ctx, { id: again.id })).state, { timeout: 20_000 })
      .toBe("done");
    const priced = await get(world.admin.ctx, { id: again.id });
    expect(priced.result?.types[0]).toMatchObject({ now: { cents: 19_200 }, proposed: { cents: 38_400 } });
  });

  it("is worked on anew when the process that had it is gone", async () => {
    const asked = await ask(world.admin.ctx, question());
    const longAgo = new Date(Date.now() - MINUTE);
    await test.db
      .update(whatIfs)
      .set({ state: "running", result: null, aliveAt: longAgo })
      .where(eq(whatIfs.id, asked.id));
    expect(await ask(world.admin.ctx, question())).toMatchObject({ id: asked.id, state: "running" });
    await expect
      .poll(async () => (await get(world.admin.ctx, { id: asked.id })).state, { timeout: 20_000 })
      .toBe("done");
  });

  it("is refused to whoever is no admin, and where nothing was asked for", async () => {
    await expect(ask(world.lead.ctx, question())).rejects.toMatchObject({ code: "forbidden" });
    const before = { ...question(), from: "2020-01-01T00:00:00Z", to: "2020-01-02T00:00:00Z" };
    await expect(ask(world.admin.ctx, before)).rejects.toMatchObject({ code: "invalid" });
    const unknown = { ...question(), types: [{ gpuType: "h200", gpus: 8 }] };
    await expect(ask(world.admin.ctx, unknown)).rejects.toMatchObject({ code: "invalid" });
    expect(
      await test.db
        .select()
        .from(whatIfs)
        .where(and(isNull(whatIfs.askedBy), lte(whatIfs.progress, 1))),
    ).toEqual([]);
  });
});
