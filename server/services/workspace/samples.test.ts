/** What a workspace's charts show of its GPUs: the ledger's amounts, and gpud's samples of them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leaseIntervals, leaseRequests, leases, usageSamples } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { samples } from "./samples.ts";

const MINUTE = 60_000;
const GIB = 2 ** 30;
const now = Date.now();
const ago = (minutes: number) => new Date(now - minutes * MINUTE);

let test: TestDatabase;
let world: World;
let workspaceId: string;

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
  workspaceId = (await makeWorkspace(world, { owner: world.member })).id;
});
afterAll(() => test.drop());

/** A lease over minutes ago, and its samples: minutes ago, seconds of GPU time since the one before, GiB. */
async function held(milli: number, from: number, to: number, measured: [number, number, number][]): Promise<void> {
  const [id, requestId, gpuId] = [newId("lea"), newId("req"), world.gpuIds[0]];
  const owner = { kind: "process" as const, pid: 1, startTime: 1 };
  const whose = { teamId: world.team, userId: world.member.id, gpuType: "soft", milli };
  const shared = { ...whose, workspaceId, memoryBytes: 2 * GIB, owner };
  await test.db.insert(leaseRequests).values({
    ...{ ...shared, id: requestId, idempotencyKey: requestId, state: "granted", decidedAt: ago(from) },
    ...{ lastPolledAt: ago(from), waitUntil: ago(from) },
  });
  await test.db.insert(leases).values({
    ...{ ...shared, id, requestId, gpuId, serverId: world.serverId, state: "ended", epoch: 1 },
    ...{ grantedAt: ago(from), ownerSeenAt: ago(to), expiresAt: ago(to), endedAt: ago(to) },
  });
  await test.db.insert(leaseIntervals).values({ ...whose, leaseId: id, gpuId, startedAt: ago(from), endedAt: ago(to) });
  for (const [at, seconds, gib] of measured) {
    const sample = { leaseId: id, at: ago(at), gpuTimeUs: seconds * 1e6, memoryBytes: gib * GIB, calls: 1 };
    await test.db.insert(usageSamples).values(sample);
  }
}

const chart = async (minutes: number) => {
  const ctx = { ...world.member.ctx, now: () => new Date(now) };
  return (await samples(ctx, { id: workspaceId, minutes })).gpu.map(({ at, heldMilli, usedMilli, memoryBytes }) => [
    ...[Math.round((now - Date.parse(at)) / 1000), heldMilli, usedMilli, memoryBytes / GIB],
  ]);
};

describe("the GPU chart of a workspace", () => {
  it("tells what was held, how much of it was computed on, and the memory that stays between samples", async () => {
    // Stretches of 30 s in 5 minutes: one of two held through, one by half; nothing outside.
    await held(500, 4, 2.75, [
      [3.6, 12, 1],
      [3.1, 60, 2],
    ]);
    expect(await chart(5)).toEqual([
      [240, 500, 400, 1],
      // It cannot compute on more than it holds.
      [210, 500, 500, 2],
      [180, 250, 0, 2],
    ]);
  });

  it("adds what is held at the same time, and begins with what was held before it", async () => {
    await held(250, 90, 59.5, [[61, 30, 1]]);
    await held(1000, 60, 59.5, []);
    expect((await chart(60))[0]).toEqual([3600, 1250, 0, 1]);
    expect((await chart(360)).map(([, amount]) => amount)).toContain(333);
  });
});
