import { and, eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { auditEvents, leaseRequests, quotas, quotaWindows } from "#server/db/schema/index.ts";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { inPool } from "#server/services/gpu-type/in-pool.ts";
import { create as reserve } from "#server/services/reservation/create.ts";
import { list as listReservations } from "#server/services/reservation/list.ts";
import { list } from "#server/services/team/list.ts";
import { removeQuota } from "#server/services/team/remove-quota.ts";
import { setQuota } from "#server/services/team/set-quota.ts";
import { setQuotaWindows } from "#server/services/team/set-quota-windows.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
});
beforeEach(async () => {
  await resetTestDatabase(test);
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

const columns = async () => (await list(world.admin.ctx)).pool.map(({ gpuType }) => gpuType);

it("removes a mistyped GPU type from every page", async () => {
  const wrong = { teamId: world.team, gpuType: "sofft" };
  await setQuota(world.admin.ctx, { ...wrong, guaranteedMilli: 0, limitMilli: 1000 });
  expect(await columns()).toEqual(["sofft", "soft"]);
  expect([...(await inPool(world.admin.ctx)).keys()]).toEqual(["soft"]);
  const team = await removeQuota(world.admin.ctx, { ...wrong, version: 1 });
  expect(team.quotas.map(({ gpuType }) => gpuType)).toEqual(["soft"]);
  expect(await columns()).toEqual(["soft"]);
  const [entry] = await test.db.select().from(auditEvents).where(eq(auditEvents.action, "team.remove-quota"));
  expect(entry).toMatchObject({ teamId: world.team, detail: { gpuType: "sofft", before: { limitMilli: 1000 } } });
});

it("removes the calendar and the reservations of the type, and keeps those of other teams", async () => {
  const of = { teamId: world.team, gpuType: "soft" };
  const windows = [{ fromMinute: 0, toMinute: 60, guaranteedMilli: 500, limitMilli: 1000 }];
  for (const teamId of [world.team, world.otherTeam])
    await setQuotaWindows(world.admin.ctx, { ...of, teamId, windows });
  const startsAt = new Date(Date.now() + 3_600_000).toISOString();
  const endsAt = new Date(Date.now() + 7_200_000).toISOString();
  await reserve(world.admin.ctx, { ...of, amount: "0.5", unit: "0.5", startsAt, endsAt });
  await removeQuota(world.admin.ctx, of);
  expect((await test.db.select().from(quotaWindows)).map(({ teamId }) => teamId)).toEqual([world.otherTeam]);
  expect((await listReservations(world.admin.ctx)).reservations).toEqual([]);
  expect((await test.db.select().from(quotas)).map(({ teamId }) => teamId)).toEqual([world.otherTeam]);
});

it("is refused while the team waits for a GPU of the type, and after a concurrent change", async () => {
  const of = { teamId: world.team, gpuType: "soft" };
  await expect(removeQuota(world.admin.ctx, { ...of, version: 7 })).rejects.toMatchObject({ code: "conflict" });
  const { id: workspaceId } = await makeWorkspace(world, { owner: world.member });
  const id = newId("req");
  await test.db.insert(leaseRequests).values({
    ...{ ...of, id, workspaceId, userId: world.member.id, idempotencyKey: id, milli: 500, memoryBytes: 1 },
    ...{ owner: { kind: "kernel" as const, pid: 1, startTime: 1 }, state: "queued" as const },
    ...{ lastPolledAt: new Date(), waitUntil: new Date() },
  });
  await expect(removeQuota(world.admin.ctx, of)).rejects.toMatchObject({
    message: expect.stringContaining("Team vision still holds 0 soft leases and has 1 waiting.") as string,
  });
  const left = and(eq(quotas.teamId, world.team), eq(quotas.gpuType, "soft"));
  expect(await test.db.$count(quotas, left)).toBe(1);
});

it("needs an admin, and names a missing quota", async () => {
  const of = { teamId: world.team, gpuType: "soft" };
  await expect(removeQuota(world.lead.ctx, of)).rejects.toMatchObject({ code: "forbidden" });
  await expect(removeQuota(world.admin.ctx, { ...of, gpuType: "h200" })).rejects.toMatchObject({
    message: "Team vision has no quota for h200.",
  });
});
