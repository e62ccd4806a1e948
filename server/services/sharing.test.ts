import { eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import {
  auditEvents,
  kindWindows,
  leaseIntervals,
  leaseRequests,
  leases,
  quotaRequests,
  quotas,
  teamUsage,
} from "#server/db/schema/index.ts";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { evaluateQueue } from "#server/scheduler/queue.ts";
import { list as listAudit } from "#server/services/audit/list.ts";
import { advanceQueue } from "#server/services/lease/advance.ts";
import { advanceOverdue } from "#server/services/lease/advance-overdue.ts";
import { extend } from "#server/services/lease/extend.ts";
import { settleUsage } from "#server/services/lease/settle-usage.ts";
import { withTypeLock } from "#server/services/lease/with-type-lock.ts";
import { loadWorld } from "#server/services/lease/world.ts";
import { list as listNotices } from "#server/services/notice/list.ts";
import { ask } from "#server/services/quota-request/ask.ts";
import { decide } from "#server/services/quota-request/decide.ts";
import { end } from "#server/services/quota-request/end.ts";
import { create as reserve } from "#server/services/reservation/create.ts";
import { list as listReservations } from "#server/services/reservation/list.ts";
import { remove as removeReservation } from "#server/services/reservation/remove.ts";
import { lift } from "#server/services/stop/lift.ts";
import { list as listStops } from "#server/services/stop/list.ts";
import { setStop } from "#server/services/stop/set.ts";
import { get } from "#server/services/team/get.ts";
import { removeMember } from "#server/services/team/remove-member.ts";
import { setPolicy } from "#server/services/team/set-policy.ts";
import { setQuota } from "#server/services/team/set-quota.ts";
import { setQuotaWindows } from "#server/services/team/set-quota-windows.ts";
import { warnOfBudgets } from "#server/services/team/warn-of-budgets.ts";
import { makePerson, makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { deactivate } from "#server/services/user/deactivate.ts";

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

const loaded = async (at = new Date()) => await loadWorld(world.db, "soft", at);
const hours = (count: number) => new Date(Date.now() + count * 3_600_000).toISOString();
const code = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error: { code?: string }) => error.code,
  );

/** A request of the member that waits, and the rule that holds it. */
async function waits(): Promise<string> {
  const { id: workspaceId } = await makeWorkspace(world, { owner: world.member });
  const id = newId("req");
  const now = new Date();
  await world.db.insert(leaseRequests).values({
    ...{ id, workspaceId, teamId: world.team, userId: world.member.id, idempotencyKey: id, gpuType: "soft" },
    ...{ milli: 250, memoryBytes: 0, owner: { kind: "kernel", pid: 1, startTime: 1 }, state: "queued" as const },
    ...{ lastPolledAt: now, waitUntil: now },
  });
  return id;
}
async function held(requestId: string, now?: Date): Promise<string | undefined> {
  const verdict = evaluateQueue(await loaded(now)).find((one) => one.requestId === requestId);
  return verdict?.state === "queued" ? verdict.obstacle.rule : verdict?.state;
}

it("a stop holds a person's requests back until it is lifted", async () => {
  const request = await waits();
  expect(await held(request)).toBe("granted");
  const { id } = await setStop(world.admin.ctx, { scope: "user", subjectId: world.member.id, reason: "a leak" });
  expect(await held(request)).toBe("stopped");
  expect(await lift(world.admin.ctx, { id })).toEqual({ stops: [] });
  expect(await held(request)).toBe("granted");
  const audited = await world.db.select().from(auditEvents).where(eq(auditEvents.subject, id)).orderBy(auditEvents.seq);
  expect(audited.map(({ action, actorId }) => [action, actorId])).toEqual([
    ["stop.set", world.admin.id],
    ["stop.lift", world.admin.id],
  ]);
  expect(await code(setStop(world.admin.ctx, { scope: "team", reason: "whom?" }))).toBe("invalid");
});

it("a stop is told with its reason to those whom it stops and to admins, and to nobody else", async () => {
  const { ctx } = world.admin;
  const told = async (person: { ctx: typeof ctx }) => (await listStops(person.ctx)).stops.map(({ reason }) => reason);
  await setStop(ctx, { scope: "user", subjectId: world.member.id, reason: "a leak" });
  await setStop(ctx, { scope: "team", subjectId: world.otherTeam, reason: "an audit" });
  await setStop(ctx, { scope: "all", reason: "maintenance" });
  expect(await told(world.admin)).toEqual(["a leak", "an audit", "maintenance"]);
  expect(await told(world.member)).toEqual(["a leak", "maintenance"]);
  expect(await told(world.colleague)).toEqual(["maintenance"]);
  expect(await told(world.outsider)).toEqual(["an audit", "maintenance"]);
});

it("no lease is extended under a stop, while its type takes other work, or when the team's budget is used up", async () => {
  const requestId = await waits();
  const now = new Date();
  const leaseId = newId("lea");
  const [request] = await world.db.select().from(leaseRequests).where(eq(leaseRequests.id, requestId));
  await world.db.insert(leases).values({
    ...{ id: leaseId, requestId, workspaceId: request?.workspaceId ?? "", teamId: world.team, userId: world.member.id },
    ...{ gpuId: world.gpuIds[0], serverId: world.serverId, gpuType: "soft", milli: 250, memoryBytes: 1 },
    ...{ owner: { kind: "kernel", pid: 1, startTime: 1 }, state: "active" as const, epoch: 1 },
    ...{ grantedAt: now, ownerSeenAt: now, expiresAt: now },
  });
  const longer = () =>
    extend(world.member.ctx, { leaseId, forSeconds: 60 }).then(
      () => "extended",
      (error: Error) => error.message,
    );
  expect(await longer()).toBe("extended");
  const { id } = await setStop(world.admin.ctx, { scope: "team", subjectId: world.team, reason: "an audit" });
  expect(await longer()).toMatch(/^New leases are stopped \(an audit\)/);
  await lift(world.admin.ctx, { id });
  await setStop(world.admin.ctx, { scope: "team", subjectId: world.otherTeam, reason: "an audit" });
  expect(await longer()).toBe("extended");
  const always = { gpuType: "soft", fromMinute: 0, toMinute: 0 };
  await world.db.insert(kindWindows).values({ ...always, id: newId("win"), kind: "batch" });
  expect(await longer()).toMatch(/^soft takes no interactive work/);
  await world.db.update(kindWindows).set({ kind: "interactive" });
  expect(await longer()).toBe("extended");
  await world.db.update(quotas).set({ budgetMilliHours: 0 }).where(eq(quotas.teamId, world.team));
  expect(await longer()).toMatch(/has used its budget of GPU-hours of soft/);
});

it("a stop of a person can end all that the person holds", async () => {
  const requestId = await waits();
  const now = new Date();
  await world.db.insert(leases).values({
    ...{ id: newId("lea"), requestId, workspaceId: "ws", teamId: world.team, userId: world.member.id },
    ...{ gpuId: world.gpuIds[0], serverId: world.serverId, gpuType: "soft", milli: 250, memoryBytes: 1 },
    ...{ owner: { kind: "kernel", pid: 1, startTime: 1 }, state: "active" as const, epoch: 1 },
    ...{ grantedAt: now, ownerSeenAt: now, expiresAt: now },
  });
  const input = { scope: "user" as const, subjectId: world.member.id, reason: "a leak", endLeases: true };
  expect(await setStop(world.admin.ctx, input)).toMatchObject({ endedLeases: 1 });
  expect(await world.db.select().from(leases)).toMatchObject([{ state: "ending", endMode: "park" }]);
});

it("a stop ends what a round grants that had begun before", async () => {
  await waits();
  const decided = Promise.withResolvers<void>();
  const round = withTypeLock(world.system, "soft", async (tx) => {
    expect((await advanceQueue(tx, "soft")).granted.size).toBe(1);
    await decided.promise;
  });
  // As long as that round has not committed, nobody else sees what it granted.
  const stopped = setStop(world.admin.ctx, { scope: "all", reason: "a leak", endLeases: true });
  await new Promise((resolve) => setTimeout(resolve, 200));
  decided.resolve();
  await round;
  expect(await stopped).toMatchObject({ endedLeases: 1 });
  expect(await world.db.select().from(leases)).toMatchObject([{ state: "ending" }]);
});

it("more quota is asked by a member, approved by the lead, and ends alone", async () => {
  const asked = await ask(world.member.ctx, {
    ...{ teamId: world.team, gpuType: "soft", limitMilli: 500, endsAt: hours(2), reason: "a paper" },
  });
  expect((await loaded()).quotas.get(world.team)?.limitMilli).toBe(1000);
  expect(await code(decide(world.member.ctx, { id: asked.id, approve: true }))).toBe("forbidden");
  await decide(world.lead.ctx, { id: asked.id, approve: true });
  expect((await loaded()).quotas.get(world.team)?.limitMilli).toBe(1500);
  expect((await loaded(new Date(hours(3)))).quotas.get(world.team)?.limitMilli).toBe(1000);
  expect(await code(decide(world.admin.ctx, { id: asked.id, approve: false }))).toBe("conflict");
});

it("an approved increase is shown with the quota, and a lead or an admin ends it early", async () => {
  const input = { teamId: world.team, gpuType: "soft", limitMilli: 500, endsAt: hours(24), reason: "a paper" };
  const shown = async () => (await get(world.member.ctx, { id: world.team })).quotas[0]?.increases;
  const { id } = await ask(world.member.ctx, input);
  expect(await shown()).toEqual([]);
  expect(await code(end(world.lead.ctx, { id }))).toBe("conflict");
  await decide(world.lead.ctx, { id, approve: true });
  expect(await shown()).toEqual([{ guaranteedMilli: 0, limitMilli: 500, endsAt: input.endsAt }]);
  for (const { ctx } of [world.member, world.outsider]) expect(await code(end(ctx, { id }))).toBe("forbidden");
  await end(world.lead.ctx, { id });
  expect((await loaded()).quotas.get(world.team)?.limitMilli).toBe(1000);
  expect(await shown()).toEqual([]);
  expect(await code(end(world.admin.ctx, { id }))).toBe("conflict");
  const audited = await world.db.select().from(auditEvents).where(eq(auditEvents.subject, id)).orderBy(auditEvents.seq);
  expect(audited.map(({ action }) => action)).toEqual([
    "quota-request.ask",
    "quota-request.approve",
    "quota-request.end",
  ]);
  expect(audited[2]).toMatchObject({ actorId: world.lead.id, detail: { before: { endsAt: input.endsAt } } });
});

it("more quota may be asked for a later time: it begins and ends alone, for those who wait too", async () => {
  const requestId = await waits();
  await world.db.update(quotas).set({ guaranteedMilli: 0, limitMilli: 0 }).where(eq(quotas.teamId, world.team));
  const input = { teamId: world.team, gpuType: "soft", limitMilli: 500, reason: "a class" };
  const asked = await ask(world.member.ctx, { ...input, startsAt: hours(2), endsAt: hours(4) });
  await decide(world.lead.ctx, { id: asked.id, approve: true });
  const limits = await Promise.all([1, 3, 5].map(async (hour) => (await loaded(new Date(hours(hour)))).quotas));
  expect(limits.map((at) => at.get(world.team)?.limitMilli)).toEqual([0, 500, 0]);
  expect(await held(requestId, new Date(hours(3)))).toBe("granted");
  expect(await held(requestId)).not.toBe("granted");
  expect(await code(ask(world.member.ctx, { ...input, startsAt: hours(2), endsAt: hours(1) }))).toBe("invalid");
  const past = await ask(world.member.ctx, { ...input, startsAt: hours(-2), endsAt: hours(1) });
  expect(Date.parse(past.startsAt)).toBeGreaterThan(Date.now() - 60_000);
});

it("more of a guarantee for a later time is proved against what is promised then", async () => {
  const more = { teamId: world.team, gpuType: "soft", guaranteedMilli: 1000, limitMilli: 1000, reason: "a class" };
  await reserve(world.admin.ctx, {
    ...{ teamId: world.otherTeam, gpuType: "soft", amount: "1", unit: "0.5", startsAt: hours(3), endsAt: hours(5) },
  });
  const decided = async (from: number, to: number) => {
    const { id } = await ask(world.member.ctx, { ...more, startsAt: hours(from), endsAt: hours(to) });
    return await code(decide(world.admin.ctx, { id, approve: true }));
  };
  expect(await decided(2, 4)).toBe("quota");
  expect(await decided(5, 6)).toBe("done");
});

it("room for a reservation is made before it begins though nobody waits, and given back when it is given up", async () => {
  const requestId = await waits();
  const now = new Date();
  const at = new Date(hours(-1));
  await world.db.update(leaseRequests).set({ state: "granted" }).where(eq(leaseRequests.id, requestId));
  const [request] = await world.db.select().from(leaseRequests);
  await world.db.insert(leases).values(
    world.gpuIds.map((gpuId, ordinal) => ({
      ...{ id: newId("lea"), requestId: request?.id ?? "", workspaceId: request?.workspaceId ?? "" },
      ...{ teamId: world.team, userId: world.member.id, gpuId, serverId: world.serverId, gpuType: "soft" },
      ...{
        ordinal,
        milli: 1000,
        memoryBytes: 1,
        owner: { kind: "kernel" as const, pid: 1, startTime: 1 },
        borrowed: 1,
      },
      ...{ state: "active" as const, epoch: 1, grantedAt: at, ownerSeenAt: now, expiresAt: new Date(hours(9)) },
    })),
  );
  const told = async () => (await world.db.select().from(leases)).map(({ noticeFor }) => noticeFor);
  await advanceOverdue(world.system);
  expect(await told()).toEqual([null, null]);
  const soon = new Date(Date.now() + 60_000).toISOString();
  const { id } = await reserve(world.admin.ctx, {
    ...{ teamId: world.otherTeam, userId: world.outsider.id, gpuType: "soft", amount: "0.5", unit: "0.5" },
    ...{ startsAt: soon, endsAt: hours(1) },
  });
  await advanceOverdue(world.system);
  expect(await told()).toEqual([`${id}/0`, `${id}/0`]);
  const [notice] = (await listNotices(world.member.ctx)).notices;
  expect(notice?.body).toContain("nlp");
  await removeReservation(world.admin.ctx, { id });
  await advanceOverdue(world.system);
  expect(await told()).toEqual([null, null]);
});

it("what is reserved for one person is given up when they leave the team or their account is closed", async () => {
  const both = { [world.team]: "member", [world.otherTeam]: "member" } as const;
  const { id: userId } = await makePerson(world.db, { name: "Mo", teams: both });
  const class_ = { gpuType: "soft", amount: "0.25", unit: "0.25", startsAt: hours(1), endsAt: hours(2) };
  const here = await reserve(world.admin.ctx, { ...class_, teamId: world.team, userId });
  const there = await reserve(world.admin.ctx, { ...class_, teamId: world.otherTeam, userId });
  const shared = await reserve(world.admin.ctx, { ...class_, teamId: world.team });
  const left = async () => (await listReservations(world.admin.ctx)).reservations.map(({ id }) => id).sort();
  await removeMember(world.lead.ctx, { teamId: world.team, userId });
  expect(await left()).toEqual([there.id, shared.id].sort());
  await deactivate(world.admin.ctx, { id: userId });
  expect(await left()).toEqual([shared.id]);
  const { events } = await listAudit(world.admin.ctx, { action: "reservation.remove", limit: 5 });
  expect(events.map(({ subject }) => subject)).toEqual([there.id, here.id]);
});

it("more of a guarantee is an admin's to promise, as far as the devices go", async () => {
  const more = (guaranteedMilli: number) =>
    ask(world.member.ctx, {
      ...{
        teamId: world.team,
        gpuType: "soft",
        guaranteedMilli,
        limitMilli: 2000,
        endsAt: hours(2),
        reason: "a paper",
      },
    });
  const [much, some] = [await more(1500), await more(1000)];
  expect(await code(decide(world.lead.ctx, { id: some.id, approve: true }))).toBe("forbidden");
  expect(await code(decide(world.admin.ctx, { id: much.id, approve: true }))).toBe("quota");
  expect(await code(decide(world.admin.ctx, { id: some.id, approve: true }))).toBe("done");
  const states = (await world.db.select().from(quotaRequests)).map((row) => row.state).sort();
  expect(states).toEqual(["approved", "asked"]);
});

it("what is reserved for a team that takes whole cards is whole GPUs", async () => {
  await setPolicy(world.admin.ctx, {
    ...{ teamId: world.team, maxLeaseSeconds: null, idleSeconds: null, coTenancy: "whole-cards" },
  });
  const reservation = (amount: string, unit: string) =>
    reserve(world.admin.ctx, {
      ...{ teamId: world.team, gpuType: "soft", amount, unit, startsAt: hours(1), endsAt: hours(3) },
    });
  await expect(reservation("0.5", "0.5")).rejects.toThrow("amount: This team takes whole GPUs only");
  await expect(reservation("1", "0.5")).rejects.toThrow("unit: This team takes whole GPUs only");
  // Half a guarantee and half of another team's need a card each beside it.
  expect(await code(reservation("1", "1"))).toBe("quota");
  await world.db.update(quotas).set({ guaranteedMilli: 0 }).where(eq(quotas.teamId, world.team));
  expect(await code(reservation("1", "1"))).toBe("done");
});

it("a reservation and a calendar are refused where the guarantees of then leave no room", async () => {
  const reservation = (amount: string) =>
    reserve(world.admin.ctx, {
      ...{ teamId: world.team, gpuType: "soft", amount, unit: "0.5", startsAt: hours(1), endsAt: hours(3) },
    });
  expect(await code(reservation("1.5"))).toBe("quota");
  expect(await code(reservation("1"))).toBe("done");
  const night = { fromMinute: 0, toMinute: 10_079, guaranteedMilli: 1500, limitMilli: 2000 };
  const windows = { teamId: world.team, gpuType: "soft", windows: [night] };
  expect(await code(setQuotaWindows(world.admin.ctx, windows))).toBe("quota");
});

it("a guarantee is proved for the largest request that the team states, and refused with the packing", async () => {
  const quota = { teamId: world.team, gpuType: "soft", guaranteedMilli: 1500, limitMilli: 2000 };
  expect(await code(setQuota(world.admin.ctx, { ...quota, largestMilli: 500 }))).toBe("done");
  await expect(setQuota(world.admin.ctx, { ...quota, largestMilli: 750 })).rejects.toMatchObject({
    ...{ code: "quota", detail: { missing: { teamName: "nlp" }, packing: [{ device: "soft-0 on gpu-1" }, {}] } },
  });
});

it("a guarantee is proved anew for another largest request, a smaller one and the usual one too", async () => {
  const quota = { teamId: world.team, gpuType: "soft", limitMilli: 2000 };
  const other = { teamId: world.otherTeam, gpuType: "soft", limitMilli: 2000 };
  const set = async (input: Parameters<typeof setQuota>[1]) => await code(setQuota(world.admin.ctx, input));
  expect(await set({ ...other, guaranteedMilli: 0 })).toBe("done");
  expect(await set({ ...quota, guaranteedMilli: 1800, largestMilli: 900 })).toBe("done");
  // Three of 0.6 need three devices.
  expect(await set({ ...quota, guaranteedMilli: 1800, largestMilli: 600 })).toBe("quota");
  expect(await set({ ...quota, guaranteedMilli: 1000, largestMilli: 200 })).toBe("done");
  expect(await set({ ...other, guaranteedMilli: 800, largestMilli: 400 })).toBe("done");
  expect(await set({ ...quota, guaranteedMilli: 1200, largestMilli: 600 })).toBe("done");
  // Nothing stated is one GPU: all of the 0.8 at once.
  expect(await set({ ...other, guaranteedMilli: 800 })).toBe("quota");
  await world.db.update(quotas).set({ guaranteedMilli: 5000 }).where(eq(quotas.teamId, world.otherTeam));
  // Where nothing fits as it is, smaller requests are a way out.
  expect(await set({ ...quota, guaranteedMilli: 1200, largestMilli: 100 })).toBe("done");
});

it("a team's policy is part of what the scheduler decides on", async () => {
  await setPolicy(world.admin.ctx, {
    ...{ teamId: world.team, maxLeaseSeconds: 3600, idleSeconds: 600, coTenancy: "own-team" },
  });
  expect((await loaded()).quotas.get(world.team)).toMatchObject({ coTenancy: "own-team", idleMs: 600_000, times: {} });
  await setPolicy(world.admin.ctx, {
    ...{ teamId: world.team, maxLeaseSeconds: null, idleSeconds: null, coTenancy: "any" },
    ...{ minRunSeconds: 0, noticeSeconds: 15 },
  });
  expect((await loaded()).quotas.get(world.team)?.times).toEqual({ minRunMs: 0, noticeMs: 15_000 });
});

it("what a team borrows counts against it in the surplus, and decays", async () => {
  const at = (ms: number) => ({ ...world.system, now: () => new Date(1e12 + ms) });
  const requestId = await waits();
  await world.db.insert(leases).values({
    ...{ id: newId("lea"), requestId, workspaceId: "ws", teamId: world.team, userId: world.member.id },
    ...{ gpuId: world.gpuIds[0], serverId: world.serverId, gpuType: "soft", milli: 1000, memoryBytes: 1 },
    ...{ owner: { kind: "kernel", pid: 1, startTime: 1 }, state: "active" as const, epoch: 1 },
    ...{ grantedAt: new Date(1e12), ownerSeenAt: new Date(1e12), expiresAt: new Date(1e12) },
  });
  await settleUsage(at(0));
  await settleUsage(at(60_000));
  // Half a GPU above the guarantee, for a minute.
  expect(await world.db.select().from(teamUsage)).toMatchObject([{ teamId: world.team, amount: 30_000 }]);
});

it("a team is told once when its GPU-hours reach a level, and again at the next", async () => {
  const at = (minutes: number) => ({ ...world.system, now: () => new Date(Date.UTC(2026, 4, 10) + minutes * 60_000) });
  const { ctx: admin } = world.admin;
  await setQuota(admin, {
    ...{ teamId: world.team, gpuType: "soft", guaranteedMilli: 500, limitMilli: 1000, budgetMilliHours: 1000 },
  });
  const requestId = await waits();
  const lease = { id: newId("lea"), teamId: world.team, userId: world.member.id, gpuId: world.gpuIds[0] ?? "" };
  await world.db.insert(leases).values({
    ...{
      ...lease,
      requestId,
      workspaceId: "ws",
      serverId: world.serverId,
      gpuType: "soft",
      milli: 1000,
      memoryBytes: 1,
    },
    ...{ owner: { kind: "kernel", pid: 1, startTime: 1 }, state: "active" as const, epoch: 1 },
    ...{ grantedAt: at(0).now(), ownerSeenAt: at(0).now(), expiresAt: at(90).now() },
  });
  const { id: leaseId, ...whose } = lease;
  await world.db
    .insert(leaseIntervals)
    .values({ ...whose, leaseId, gpuType: "soft", milli: 1000, startedAt: at(0).now() });
  for (const minutes of [10, 31, 32, 49, 50]) await warnOfBudgets(at(minutes));
  const told = await world.db
    .select()
    .from(auditEvents)
    .where(eq(auditEvents.action, "team.budget-warning"))
    .orderBy(auditEvents.seq);
  expect(told.map(({ teamId, detail }) => [teamId, detail])).toMatchObject([
    [world.team, { level: 50, usedMilliHours: 516, milliHours: 1000, spentAt: "2026-05-10T01:00:02.400Z" }],
    [world.team, { level: 80, usedMilliHours: 816 }],
  ]);
  const heard = async (person: { ctx: typeof admin }) =>
    (await listNotices(person.ctx)).notices.map(({ title }) => title);
  const levels = ["Team vision is at 80 % of its soft budget", "Team vision is at 50 % of its soft budget"];
  expect(await heard(world.lead)).toEqual(levels);
  expect(await heard(world.member)).toEqual([]);
  await warnOfBudgets(at(61));
  expect(await heard(world.lead)).toEqual(["Team vision has used its soft budget", ...levels]);
  expect(await heard(world.member)).toEqual(["Team vision has used its soft budget"]);
});
