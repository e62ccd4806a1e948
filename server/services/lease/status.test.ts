import { randomUUID } from "node:crypto";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { leaseStatus } from "#server/contracts/lease.ts";
import { gpuPrices, leases } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
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
