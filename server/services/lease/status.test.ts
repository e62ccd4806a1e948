import { randomUUID } from "node:crypto";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { leaseStatus } from "#server/contracts/lease.ts";
import { gpuPrices, leases } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { setGpuPolicy } from "#server/services/workspace/set-gpu-policy.ts";
import { request } from "./request.ts";
import { status } from "./status.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(async () => test.drop());

it("tells what a lease has cost so far, where its type has a price by the hour", async () => {
  const { id: workspaceId } = await makeWorkspace(world, { owner: world.member });
  const principal = { kind: "workspace" as const, workspaceId, teamId: world.team, userId: world.member.id };
  const owner = { kind: "kernel" as const, pid: 1, startTime: 1 };
  const ctx = { ...world.system, principal };
  await request(ctx, { requestId: randomUUID(), amount: "0.5", owner, waitSeconds: 0 });
  const grantedAt = new Date(Date.now() - 30 * 60_000);
  await world.db.update(leases).set({ grantedAt }).where(eq(leases.workspaceId, workspaceId));
  const now = () => new Date(grantedAt.getTime() + 30 * 60_000);
  const told = async () => leaseStatus.parse(await status({ ...ctx, now }, {}));

  expect((await told()).leases).toMatchObject([{ gpuMilliHours: 250, costMicro: null }]);
  const price = { gpuType: "soft", basis: "hour" as const, micro: 2_400_000, changedAt: new Date() };
  await world.db.insert(gpuPrices).values(price);
  expect(await told()).toMatchObject({ currency: "EUR", leases: [{ gpuMilliHours: 250, costMicro: 600_000 }] });
  await world.db.update(gpuPrices).set({ basis: "month" });
  expect((await told()).leases).toMatchObject([{ costMicro: null }]);
});

it("borrows a default amount that is memory, and tells what that comes to on its type", async () => {
  const { id } = await makeWorkspace(world, { owner: world.colleague });
  const settings = { id, gpuPolicy: "ask" as const };
  await expect(setGpuPolicy(world.colleague.ctx, { ...settings, defaultAmount: "1.5" })).rejects.toThrow("use 1 or 2");
  await setGpuPolicy(world.colleague.ctx, { ...settings, defaultAmount: " 2G " });
  const principal = { kind: "workspace" as const, workspaceId: id, teamId: world.team, userId: world.colleague.id };
  const ctx = { ...world.system, principal };
  expect((await status(ctx, {})).workspace).toMatchObject({ defaultAmount: "2G", defaultMilli: 250 });
  const owner = { kind: "kernel" as const, pid: 2, startTime: 1 };
  const answer = await request(ctx, { requestId: randomUUID(), amount: "", owner, waitSeconds: 0 });
  expect(answer).toMatchObject({ state: "granted", lease: { milli: 250, memoryBytes: 2 * 2 ** 30 } });
});
