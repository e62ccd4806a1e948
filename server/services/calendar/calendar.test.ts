import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { leaseRequests, leases, reservations } from "#server/db/schema/index.ts";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { list } from "#server/services/calendar/list.ts";
import { setKindWindows } from "#server/services/gpu-type/set-kind-windows.ts";
import { loadWorld } from "#server/services/lease/world.ts";
import { create } from "#server/services/reservation/create.ts";
import { list as listReservations } from "#server/services/reservation/list.ts";
import { preview } from "#server/services/reservation/preview.ts";
import { remove } from "#server/services/reservation/remove.ts";
import { previewQuotaWindows } from "#server/services/team/preview-quota-windows.ts";
import { readQuotaWindows } from "#server/services/team/read-quota-windows.ts";
import { removeMember } from "#server/services/team/remove-member.ts";
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

const hours = (count: number) => new Date(Date.now() + count * 3_600_000).toISOString();
const code = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error: { code?: string }) => error.code,
  );
// Two devices; 0.5 is guaranteed to each of the two teams.
const night = (guaranteedMilli: number) => ({
  ...{ fromMinute: 1200, toMinute: 480, guaranteedMilli, limitMilli: 2000 },
});

it("a calendar is edited by one at a time, and goes when it is empty", async () => {
  const { ctx } = world.admin;
  const of = { teamId: world.team, gpuType: "soft" };
  const both = [200, 1000].map((milli) => setQuotaWindows(ctx, { ...of, windows: [night(milli)], version: 0 }));
  expect((await Promise.all(both.map(code))).sort()).toEqual(["conflict", "done"]);
  expect(await readQuotaWindows(world.member.ctx, of)).toMatchObject({ version: 1, windows: [{ limitMilli: 2000 }] });
  expect(await code(readQuotaWindows(world.outsider.ctx, of))).toBe("forbidden");
  expect(await setQuotaWindows(ctx, { ...of, windows: [], version: 1 })).toEqual({ version: 2, windows: [] });
  const kinds = { gpuType: "soft", windows: [{ fromMinute: 0, toMinute: 60, kind: "batch" as const }] };
  expect(await setKindWindows(ctx, { ...kinds, version: 0 })).toMatchObject({ version: 1 });
  expect(await code(setKindWindows(ctx, { ...kinds, version: 0 }))).toBe("conflict");
});

it("two entries never hold at the same time", async () => {
  const windows = [night(500), { ...night(500), fromMinute: 0, toMinute: 60 }];
  const input = { teamId: world.team, gpuType: "soft", windows };
  expect(await code(setQuotaWindows(world.admin.ctx, input))).toBe("invalid");
  expect(await previewQuotaWindows(world.admin.ctx, input)).toMatchObject({
    refusal: "Two entries hold at the same time. Remove one, or make them meet.",
  });
});

it("a calendar is proved before it is saved: the refusal comes with the packing, and nothing of it stays", async () => {
  const { ctx } = world.admin;
  const of = { teamId: world.team, gpuType: "soft" };
  expect(await previewQuotaWindows(ctx, { ...of, windows: [night(1000)] })).toEqual({
    ...{ refusal: null, at: null, packing: [], spareMilli: 500 },
  });
  const refused = await previewQuotaWindows(ctx, { ...of, windows: [night(2000)] });
  expect(refused.refusal).toContain("0.5 of team nlp has no place at");
  expect(refused.at).not.toBeNull();
  expect(refused.packing).toEqual([
    { device: "soft-0 on gpu-1", pieces: [{ teamName: "vision", milli: 1000 }], leftMilli: 0 },
    { device: "soft-1 on gpu-1", pieces: [{ teamName: "vision", milli: 1000 }], leftMilli: 0 },
  ]);
  expect(await readQuotaWindows(ctx, of)).toEqual({ version: 0, windows: [] });
});

it("everybody sees what a type takes when, and the quotas of the own teams", async () => {
  await setKindWindows(world.admin.ctx, { gpuType: "soft", windows: [{ fromMinute: 0, toMinute: 60, kind: "batch" }] });
  const seen = async (person: World["admin"]) => {
    const { calendars } = await list(person.ctx);
    return calendars.map(({ gpuType, windows, quotas }) => [gpuType, windows.length, quotas.map((q) => q.teamName)]);
  };
  expect(await seen(world.admin)).toEqual([["soft", 1, ["nlp", "vision"]]]);
  expect(await seen(world.member)).toEqual([["soft", 1, ["vision"]]]);
});

it("a reservation says whom it displaces: who has borrowed, and lasts until then", async () => {
  const { ctx } = world.admin;
  await setQuota(ctx, { teamId: world.team, gpuType: "soft", guaranteedMilli: 0, limitMilli: 2000 });
  const { id: workspaceId } = await makeWorkspace(world, { owner: world.member });
  const now = new Date(Date.now() - 3_600_000);
  for (const [gpuId, lasts] of [
    [world.gpuIds[0], 10],
    [world.gpuIds[1], 1],
  ] as const) {
    const id = newId("req");
    const shared = { workspaceId, teamId: world.team, userId: world.member.id, gpuType: "soft", memoryBytes: 1 };
    const owner = { kind: "kernel" as const, pid: lasts, startTime: 1 };
    await world.db.insert(leaseRequests).values({
      ...{ ...shared, id, idempotencyKey: id, milli: 1000, owner, state: "granted" as const },
      ...{ lastPolledAt: now, waitUntil: now },
    });
    await world.db.insert(leases).values({
      ...{ ...shared, id: newId("lea"), requestId: id, milli: 1000, owner, gpuId, serverId: world.serverId },
      ...{ state: "active" as const, epoch: 1, borrowed: 1, grantedAt: now, ownerSeenAt: now },
      expiresAt: new Date(hours(lasts)),
    });
  }
  const reservation = (amount: string) => ({
    ...{ teamId: world.otherTeam, gpuType: "soft", amount, unit: "0.5", startsAt: hours(3), endsAt: hours(5) },
  });
  // The device whose lease has ended by then is enough for one; the whole pool is not.
  expect(await preview(ctx, reservation("0.5"))).toMatchObject({ refusal: null, displaced: [] });
  expect(await preview(ctx, reservation("1.5"))).toMatchObject({
    ...{ refusal: null, displaced: [{ who: "Max", teamName: "vision", milli: 1000 }] },
  });
  expect(await preview(ctx, reservation("2"))).toMatchObject({ displaced: [], packing: [{}, {}] });
  expect(await world.db.select().from(reservations)).toEqual([]);
});

it("a reservation is given up by its team's lead, and by nobody else's", async () => {
  const id = newId("rsv");
  await world.db.insert(reservations).values({
    ...{ id, teamId: world.team, gpuType: "soft", milli: 500, unitMilli: 500 },
    ...{ startsAt: new Date(hours(1)), endsAt: new Date(hours(2)) },
  });
  expect(await code(remove(world.member.ctx, { id }))).toBe("forbidden");
  expect(await code(remove(world.outsider.ctx, { id }))).toBe("forbidden");
  expect(await remove(world.lead.ctx, { id })).toEqual({ reservations: [] });
});

it("a reservation may be for one member: inside their ceiling, named to their team, and gone when they leave it", async () => {
  const { ctx } = world.admin;
  const of = { teamId: world.team, gpuType: "soft", amount: "0.5", unit: "0.5", startsAt: hours(1), endsAt: hours(2) };
  expect(await code(create(ctx, { ...of, userId: world.outsider.id }))).toBe("invalid");
  const quota = { guaranteedMilli: 500, limitMilli: 1000, personMilli: 500 };
  await setQuota(ctx, { teamId: world.team, gpuType: "soft", ...quota });
  const input = { ...of, userId: world.member.id };
  expect(await preview(ctx, input)).toMatchObject({ refusal: null, displaced: [] });
  const made = await create(ctx, input);
  expect(made).toMatchObject({ userId: world.member.id, userName: "Max" });
  expect(await code(create(ctx, { ...input, startsAt: hours(1.5) }))).toBe("invalid");
  expect(await code(create(ctx, { ...input, startsAt: hours(2), endsAt: hours(3), amount: "0.25" }))).toBe("done");
  const { reservations: seen } = await listReservations(world.colleague.ctx);
  expect(seen.map(({ userName, milli }) => [userName, milli])).toEqual([
    ["Max", 500],
    ["Max", 250],
  ]);
  expect(await listReservations(world.outsider.ctx)).toEqual({ reservations: [] });
  const then = await loadWorld(world.db, "soft", new Date(hours(1.5)));
  expect(then.reservations?.[0]).toMatchObject({ userId: world.member.id, who: "Max", milli: 500 });
  await removeMember(ctx, { teamId: world.team, userId: world.member.id });
  expect(await world.db.select().from(reservations)).toEqual([]);
});
