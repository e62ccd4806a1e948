/** What became of the pool's time, from real rows: the parts sum to wall time, whatever the span and the bins. */
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemContext } from "#server/context.ts";
import type { TimeParts } from "#server/contracts/utilisation.ts";
import {
  deviceIntervals,
  leaseIntervals,
  leaseRequests,
  leases,
  leaseWork,
  memberships,
  strandedHours,
} from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { ownUse } from "#server/services/lease/own-use.ts";
import { makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { lentBy } from "./lent.ts";
import { mostIdle, mostIdleFrom } from "./most-idle.ts";
import { read } from "./read.ts";
import { recentWaitP95 } from "./recent-wait.ts";
import { settleStranded } from "./settle-stranded.ts";

let test: TestDatabase;
let world: World;
const hour = 3600_000;
const start = Math.floor((Date.now() - 100 * hour) / hour) * hour;
const at = (hours: number) => new Date(start + hours * hour);
const iso = (hours: number) => at(hours).toISOString();

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
  const [first, second] = world.gpuIds;
  await test.db.insert(deviceIntervals).values([
    { gpuId: first, state: "open", startedAt: at(0), endedAt: null },
    { gpuId: second, state: "open", startedAt: at(0), endedAt: at(6) },
    { gpuId: second, state: "draining", startedAt: at(6), endedAt: at(8) },
    { gpuId: second, state: "lost", startedAt: at(8), endedAt: at(10) },
  ]);
  const mine = (await makeWorkspace(world, { owner: world.member })).id;
  const theirs = (await makeWorkspace(world, { owner: world.outsider, teamId: world.otherTeam })).id;
  // 4 h of 0.5, half of it at work; it waited a minute.
  await lease(world.member, world.team, mine, first, 500, 2, 6, { usedHours: 2, waitedMs: 60_000, activePart: 0.25 });
  // 4 h of 1.0, of which two while the device drains; borrowed.
  await lease(world.outsider, world.otherTeam, theirs, second, 1000, 4, 8, {
    ...{ usedHours: 4, waitedMs: 180_000, borrowed: true, promisedUs: 2e9, deliveredUs: 1.5e9 },
  });
});
afterAll(() => test.drop());

async function lease(
  who: Person,
  teamId: string,
  workspaceId: string,
  gpuId: string,
  milli: number,
  from: number,
  to: number,
  more: {
    usedHours: number;
    waitedMs: number;
    borrowed?: boolean;
    promisedUs?: number;
    deliveredUs?: number;
    activePart?: number;
  },
): Promise<void> {
  const [id, requestId] = [newId("lea"), newId("req")];
  const owner = { kind: "process" as const, pid: 1, startTime: 1 };
  const shared = { workspaceId, teamId, userId: who.id, gpuType: "soft", milli, memoryBytes: 2 ** 30, owner };
  const createdAt = new Date(at(from).getTime() - more.waitedMs);
  await test.db.insert(leaseRequests).values({
    ...shared,
    ...{ id: requestId, idempotencyKey: requestId, state: "granted", createdAt, decidedAt: at(from) },
    ...{ lastPolledAt: at(from), waitUntil: at(from) },
  });
  await test.db.insert(leases).values({
    ...shared,
    ...{ id, requestId, gpuId, serverId: world.serverId, state: "ended", epoch: 1, borrowed: more.borrowed ? 1 : 0 },
    ...{ grantedAt: at(from), ownerSeenAt: at(to), expiresAt: at(to), endedAt: at(to) },
  });
  const hours = to - from;
  await test.db.insert(leaseWork).values(
    Array.from({ length: hours }, (_, index) => ({
      ...{ leaseId: id, hour: at(from + index), gpuTimeUs: (more.usedHours / hours) * 3.6e9 },
      ...(more.activePart === undefined
        ? {}
        : {
            smKnownUs: (more.usedHours / hours) * 3.6e9,
            smActiveUs: (more.usedHours / hours) * 3.6e9 * more.activePart,
          }),
      ...{ promisedUs: (more.promisedUs ?? 0) / hours, deliveredUs: (more.deliveredUs ?? 0) / hours },
    })),
  );
  const interval = { leaseId: id, teamId, userId: who.id, gpuId, gpuType: "soft", milli };
  await test.db.insert(leaseIntervals).values({ ...interval, startedAt: at(from), endedAt: at(to) });
}

const nearly = (hours: number) => expect.closeTo(hours, 6) as number;
const sum = ({ used, heldIdle, free, draining, lost }: TimeParts) => used + heldIdle + free + draining + lost;

describe("the time of the pool", () => {
  it("is told by what became of it", async () => {
    const all = await read(world.admin.ctx, { from: iso(0), to: iso(10) });
    // 0.5 x 2 h + 1 x 4 h used; 0.5 x 2 h idle; 20 h of devices, of which 2 drained under a lease and 2 were lost.
    expect(all.total.used).toBeCloseTo(5);
    expect(all.total.heldIdle).toBeCloseTo(1);
    expect(all.total.draining).toBeCloseTo(0);
    expect(all.total.lost).toBeCloseTo(2);
    expect(all.total.free).toBeCloseTo(12);
    expect(sum(all.total)).toBeCloseTo(20);
    expect(all.grants).toBe(2);
    expect(all.waitMedian).toBeCloseTo(120);
  });

  it.each([
    [0, 10],
    [0, 100],
    [1.234, 7.891],
    [3, 3.01],
    [-50, 12],
  ])("sums to wall time from hour %d to %d", async (from, to) => {
    const all = await read(world.admin.ctx, { from: iso(from), to: iso(to) });
    const wall = Math.max(0, Math.min(to, 10) - Math.max(0, from)) + Math.max(0, to - Math.max(0, from));
    expect(sum(all.total)).toBeCloseTo(wall, 6);
    for (const bin of all.bins) {
      const hours = (Date.parse(bin.to) - Date.parse(bin.from)) / hour;
      expect(sum(bin)).toBeLessThanOrEqual(2 * hours + 1e-9);
    }
    const rows = all.rows.reduce((total, row) => total + row.used + row.heldIdle, 0);
    expect(rows).toBeCloseTo(all.total.used + all.total.heldIdle, 6);
  });

  it.each(["team", "person", "type", "workspace"] as const)("is split by %s", async (by) => {
    const { rows } = await read(world.admin.ctx, { from: iso(0), to: iso(10), by });
    expect(rows.reduce((total, row) => total + row.used, 0)).toBeCloseTo(5);
    expect(rows).toHaveLength(by === "type" ? 1 : 2);
    const [first] = rows;
    if (by !== "type") expect(first).toMatchObject({ grants: 1, waitMedian: 180, used: 4, borrowed: 4 });
    if (by === "person") expect(first).toMatchObject({ name: "Oto", within: "nlp" });
    expect((first?.promised ?? 0) * 3600).toBeCloseTo(2000);
    expect((first?.delivered ?? 0) * 3600).toBeCloseTo(1500);
  });

  it("tells how much of what was used was effective where that is known, and that it is not known elsewhere", async () => {
    const span = { from: iso(0), to: iso(10) };
    const all = await read(world.admin.ctx, span);
    // A quarter of the hour that the half of a GPU worked; of the other's four hours nobody told.
    expect(all.total).toMatchObject({ effective: nearly(0.25), effectiveKnown: nearly(1), effectiveEstimated: 0 });
    const byTeam = new Map(all.rows.map((row) => [row.id, row]));
    expect(byTeam.get(world.team)).toMatchObject({
      used: nearly(1),
      effective: nearly(0.25),
      effectiveKnown: nearly(1),
    });
    expect(byTeam.get(world.otherTeam)).toMatchObject({ used: nearly(4), effective: null, effectiveKnown: 0 });
    const theirs = await read(world.outsider.ctx, { ...span, teamId: world.otherTeam, by: "workspace" });
    expect(theirs.total.effective).toBeNull();
    // What nobody held, and what lay idle, worked for nobody: that is known.
    const before = await read(world.admin.ctx, { from: iso(0), to: iso(2) });
    expect(before.total).toMatchObject({ used: 0, effective: 0, effectiveKnown: 0 });
    expect(all.bins.filter((bin) => bin.used > 0 && bin.effective === null).length).toBe(2);
  });

  it("names first who let most of it lie idle, where that is asked", async () => {
    const names = async (order: "held" | "idle") => {
      const { rows } = await read(world.admin.ctx, { from: iso(0), to: iso(10), by: "person", order });
      return rows.map((row) => row.name);
    };
    expect(await names("held")).toEqual(["Oto", world.member.name]);
    expect(await names("idle")).toEqual([world.member.name, "Oto"]);
    const idle = await mostIdle({ ...world.admin.ctx, now: () => at(10) }, 5);
    expect(idle).toMatchObject([{ name: world.member.name, heldIdle: expect.closeTo(1) as number }]);
    expect(new Date(mostIdleFrom(new Date("2026-11-24T13:14:15Z"))).toISOString()).toBe("2026-11-18T00:00:00.000Z");
    await expect(mostIdle(world.lead.ctx, 5)).rejects.toMatchObject({ code: "forbidden" });
    const leads = { ...world.lead.ctx, now: () => at(10) };
    expect(await mostIdle(leads, 5, [world.team])).toEqual(idle);
    expect(await mostIdle({ ...world.outsider.ctx, now: () => at(10) }, 5, [world.otherTeam])).toEqual([]);
    await expect(mostIdle(leads, 5, [world.otherTeam])).rejects.toMatchObject({ code: "forbidden" });
  });

  it("tells how long grants of the week had waited, to a lead those of the own team", async () => {
    const [admin, lead] = [world.admin.ctx, world.lead.ctx].map((ctx) => ({ ...ctx, now: () => at(10) }));
    const span = { from: new Date(mostIdleFrom(at(10))).toISOString(), to: iso(10) };
    const all = (await read(world.admin.ctx, span)).waitP95;
    expect(all).toBeGreaterThan(0);
    expect(await recentWaitP95(admin ?? world.admin.ctx)).toBe(all);
    const own = (await read(world.lead.ctx, { ...span, teamId: world.team })).waitP95;
    expect(await recentWaitP95(lead ?? world.lead.ctx, [world.team])).toBe(own);
    await expect(recentWaitP95(world.lead.ctx)).rejects.toMatchObject({ code: "forbidden" });
  });

  it("is told of one person or one workspace alone, with the name for those who may know it", async () => {
    const span = { from: iso(0), to: iso(10) };
    const { rows } = await read(world.admin.ctx, { ...span, by: "workspace" });
    const workspaceId = rows[0]?.id ?? "";
    const theirs = await read(world.admin.ctx, { ...span, workspaceId, by: "person" });
    expect(theirs).toMatchObject({ workspace: rows[0]?.name, person: null, grants: 1, rows: [{ name: "Oto" }] });
    const own = await read(world.lead.ctx, { ...span, teamId: world.team, userId: world.member.id });
    expect(own).toMatchObject({ person: world.member.name, total: { used: expect.closeTo(1) as number } });
    // Also when the person has left the team, which still tells what they held.
    const were = await test.db.delete(memberships).where(eq(memberships.userId, world.member.id)).returning();
    const left = await read(world.lead.ctx, { ...span, teamId: world.team, userId: world.member.id });
    expect(left.person).toBe(world.member.name);
    await test.db.insert(memberships).values(were);
    const none = await read(world.lead.ctx, { ...span, teamId: world.team, userId: world.outsider.id, workspaceId });
    expect(none).toMatchObject({ person: null, workspace: null, grants: 0, rows: [] });
  });

  it("names what a team lent of its guarantee, and leaves the others' time out for a lead", async () => {
    const { rows } = await read(world.admin.ctx, { from: iso(0), to: iso(10) });
    // Guaranteed 0.5 x 10 h, held 2 h: at most 3 h; the others borrowed 4 h, split by 3 h and 5 h left.
    expect(rows.find((row) => row.name === "vision")?.lent).toBeCloseTo((3 * 4) / 8);
    const own = await read(world.lead.ctx, { from: iso(0), to: iso(10), teamId: world.team });
    expect(own.rows.map((row) => row.name)).toEqual(["vision"]);
    expect(own.rows[0]?.lent).toBeCloseTo(1.5);
    expect(own.total).toMatchObject({ free: 0, lost: 0 });
    await expect(read(world.lead.ctx, { teamId: world.otherTeam })).rejects.toMatchObject({ code: "forbidden" });
    await expect(read(world.lead.ctx)).rejects.toMatchObject({ code: "forbidden" });
    await expect(read(world.member.ctx, { teamId: world.team })).rejects.toMatchObject({ code: "forbidden" });
  });

  describe("of what was free, what fitted none of those who waited is stranded", () => {
    const look = (minutes: number) => settleStranded({ ...systemContext(test.db), now: () => at(minutes / 60) });
    const stranded = async (from: number, to: number) =>
      (await read(world.admin.ctx, { from: iso(from / 60), to: iso(to / 60) })).stranded * 60;

    it("to the minute, and nothing of a time in which nobody waited or nobody looked", async () => {
      await look(46);
      await look(50);
      // Two devices are free, and lie where the one who waits cannot use them.
      const waits = newId("req");
      const { id: workspaceId } = await makeWorkspace(world, { owner: world.member });
      await test.db.insert(leaseRequests).values({
        ...{ id: waits, idempotencyKey: waits, workspaceId, teamId: world.team, userId: world.member.id },
        ...{ gpuType: "soft", milli: 500, memoryBytes: 0, owner: { kind: "process", pid: 1, startTime: 1 } },
        ...{ state: "queued", needs: { zone: "elsewhere" }, lastPolledAt: at(1), waitUntil: at(2) },
      });
      for (const minutes of [54, 58, 62, 80]) await look(minutes);
      await test.db.delete(leaseRequests).where(eq(leaseRequests.id, waits));
      for (const minutes of [82, 84]) await look(minutes);
      expect(await stranded(0, 600)).toBeCloseTo(2 * 12);
      const all = await read(world.admin.ctx, { from: iso(0), to: iso(10) });
      expect(all.bins.slice(0, 3).map((bin) => Math.round(bin.stranded * 60))).toEqual([20, 4, 0]);
      for (const bin of all.bins) expect(bin.stranded).toBeLessThanOrEqual(bin.free);
      expect(await stranded(30, 50)).toBe(0);
      expect(await stranded(50, 58)).toBeCloseTo(2 * 8);
      expect(await stranded(53, 61)).toBeCloseTo(2 * 8);
      expect(await stranded(62, 100)).toBe(0);
      expect((await read(world.admin.ctx, { from: iso(0), to: iso(10), gpuType: "a100" })).stranded).toBe(0);
      const own = await read(world.lead.ctx, { from: iso(0), to: iso(10), teamId: world.team });
      expect(own.stranded).toBe(0);
      await expect(settleStranded(world.admin.ctx)).rejects.toMatchObject({ code: "forbidden" });
    });

    it("to the hour once it is older than two days, with the same sum", async () => {
      const rows = async () => await test.db.$count(strandedHours);
      const before = await rows();
      await look(48 * 60 + 30);
      expect(await rows()).toBe(before + 1);
      await look(49 * 60 + 30);
      await look(50 * 60 + 1);
      expect(await test.db.select().from(strandedHours).orderBy(strandedHours.at)).toMatchObject([
        { at: at(0), stranded: 20 * 60e9, until: at(1) },
        { at: at(1), stranded: 4 * 60e9, until: at(84 / 60) },
        ...[{ at: at(48.5) }, { at: at(49.5) }, { at: at(50 + 1 / 60) }],
      ]);
      expect(await stranded(0, 600)).toBeCloseTo(2 * 12);
      expect(await stranded(30, 60)).toBeCloseTo(10);
    });
  });

  it("shows a person the utilization of their own GPUs only", async () => {
    const now = () => at(8);
    const held = async ({ ctx }: Person) => {
      const { bins } = await ownUse({ ...ctx, now });
      return bins.filter(({ used, idle }) => used + idle > 0);
    };
    const mine = await held(world.member);
    expect(mine.map(({ from }) => from)).toEqual([iso(2), iso(3), iso(4), iso(5)]);
    for (const { used, idle } of mine) expect(used + idle).toBeCloseTo(0.5);
    expect(await held(world.lead)).toEqual([]);
  });

  it("begins when the first GPU joined, so that the first bin averages observed time only", async () => {
    // Stretches of six hours, on round instants: the first one begins before the pool does, as a rule.
    const [first] = (await read(world.admin.ctx, { from: iso(-200), to: iso(100) })).bins;
    expect(first?.from).toBe(iso(0));
  });

  it("refuses a time that ends before it begins", async () => {
    await expect(read(world.admin.ctx, { from: iso(5), to: iso(5) })).rejects.toMatchObject({ code: "invalid" });
  });
});

describe("lending", () => {
  it("is never more than what was left of the guarantee, and never to oneself", () => {
    const time = { gpuType: "soft", guaranteed: 10, held: 0, borrowed: 0 };
    const lent = lentBy([
      { ...time, teamId: "a", held: 4 },
      { ...time, teamId: "b", guaranteed: 0, held: 50, borrowed: 50 },
    ]);
    expect(lent.get("a")).toBe(6);
    expect(lent.get("b")).toBe(0);
    expect(lentBy([{ ...time, teamId: "a", held: 15, borrowed: 5 }]).get("a") ?? 0).toBe(0);
  });
});
