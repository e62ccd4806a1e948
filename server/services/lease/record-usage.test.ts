import { randomUUID } from "node:crypto";
import { eq, inArray, sum } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { leases, leaseWork } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { recentUse } from "#server/services/utilisation/recent-use.ts";
import { list } from "./list.ts";
import { recordUsage } from "./record-usage.ts";
import { request } from "./request.ts";

let test: TestDatabase;
let world: World;
let ids: [string, string];

async function borrow(pid: number): Promise<string> {
  const { id } = await makeWorkspace(world, { owner: world.member });
  const principal = { kind: "workspace" as const, workspaceId: id, teamId: world.team, userId: world.member.id };
  const owner = { kind: "kernel" as const, pid, startTime: 1, label: "train.ipynb" };
  const asked = { requestId: randomUUID(), amount: "0.5", owner };
  const answer = await request({ ...world.system, principal }, asked);
  if (answer.state !== "granted") throw new Error(`not granted: ${answer.state}`);
  return answer.lease.id;
}

const UNTOLD = { smActivity: null, running: null };

/** What gpud states of both: seconds on the device while the other wanted it too, and what their share was, since the grant. */
async function report(...of: [delivered: number, promised: number][]): Promise<void> {
  const usages = ids.map((leaseId, at) => {
    const [delivered, promised] = of[at] ?? [0, 0];
    const [deliveredUs, promisedUs] = [delivered * 1e6, promised * 1e6];
    const none = { sessions: 1, memoryBytes: 0, parkedBytes: 0, calls: 0, bytesIn: 0, bytesOut: 0, ...UNTOLD };
    return { ...none, leaseId, gpuTimeUs: deliveredUs, deliveredUs, promisedUs };
  });
  await recordUsage(world.system, { serverId: world.serverId, usages });
}

const deviations = async () => {
  const found = (await list(world.admin.ctx)).leases;
  return ids.map((id) => (found.find((lease) => lease.id === id)?.deviationUs ?? Number.NaN) / 1e6);
};

beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
  ids = [await borrow(1), await borrow(2)];
  await test.db.update(leases).set({ state: "active" }).where(inArray(leases.id, ids));
});
afterAll(async () => test.drop());

it("what a lease got too much in one second does not make up for what it got too little in another", async () => {
  await report([3, 5], [7, 5]);
  expect(await deviations()).toEqual([2, 2]);
  // Both have had all that was promised by now, and neither when it was.
  await report([10, 10], [10, 10]);
  expect(await deviations()).toEqual([4, 4]);
  // The second waits for a device that it does not get.
  await report([15, 15], [10, 15]);
  expect(await deviations()).toEqual([4, 9]);
  const [work] = await test.db
    .select({ promised: sum(leaseWork.promisedUs), delivered: sum(leaseWork.deliveredUs) })
    .from(leaseWork);
  expect(work).toEqual({ promised: String(30e6), delivered: String((3 + 5 + 5 + 5 + 3 + 0) * 1e6) });
});

it("how active multiprocessors were is added up where gpud tells it, and stays unknown where it does not", async () => {
  await test.db.update(leases).set({ state: "ended", endedAt: new Date() }).where(inArray(leases.id, ids));
  const third = await borrow(3);
  await test.db.update(leases).set({ state: "active" }).where(eq(leases.id, third));
  const none = { sessions: 1, memoryBytes: 0, parkedBytes: 0, calls: 0, bytesIn: 0, bytesOut: 0, ...UNTOLD };
  const tell = async (seconds: number, sm: [active: number, known: number, estimated: number] | null) => {
    const [active, known, estimated] = sm ?? [0, 0, 0];
    const smActivity = sm && { activeUs: active * 1e6, knownUs: known * 1e6, estimatedUs: estimated * 1e6 };
    const usage = { ...none, leaseId: third, gpuTimeUs: seconds * 1e6, deliveredUs: 0, promisedUs: 0, smActivity };
    await recordUsage(world.system, { serverId: world.serverId, usages: [usage] });
  };
  const sums = { active: sum(leaseWork.smActiveUs), known: sum(leaseWork.smKnownUs) };
  const kept = async () => {
    const [work] = await test.db
      .select({ ...sums, estimated: sum(leaseWork.smEstimatedUs), used: sum(leaseWork.gpuTimeUs) })
      .from(leaseWork)
      .where(eq(leaseWork.leaseId, third));
    return Object.fromEntries(Object.entries(work ?? {}).map(([key, value]) => [key, Number(value) / 1e6]));
  };
  await tell(4, null);
  expect(await kept()).toEqual({ active: 0, known: 0, estimated: 0, used: 4 });
  await tell(10, [1.5, 6, 0]);
  await tell(12, [2, 8, 0.25]);
  // A gpud that cannot ask its devices any more repeats what it knew.
  await tell(20, [2, 8, 0.25]);
  expect(await kept()).toEqual({ active: 2, known: 8, estimated: 0.25, used: 20 });
  // What was known late, when the device had stopped.
  await tell(20, [3, 9, 0.25]);
  expect(await kept()).toEqual({ active: 3, known: 9, estimated: 0.25, used: 20 });
  const now = new Date();
  const [use] = await recentUse(test.db, now);
  const half = (seconds: number) => expect.closeTo((0.5 * seconds) / 60, 9) as number;
  expect(use).toMatchObject({ gpuType: "soft", usedKnown: half(9), counted: half(2.75), estimated: half(0.25) });
  const [later] = await recentUse(test.db, new Date(now.getTime() + 120_000));
  expect(later).toEqual({ gpuType: "soft", usedKnown: 0, usedUnknown: 0, counted: 0, estimated: 0 });
});
