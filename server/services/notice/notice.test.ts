import { eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { inTransaction } from "#server/context.ts";
import { gpuServers, gpus, leaseRequests, leases, notices } from "#server/db/schema/index.ts";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { lose } from "#server/services/gpu-server/lose.ts";
import { tellOfBack, tellOfLess } from "#server/services/gpu-server/tell-guarantees.ts";
import { advanceQueue } from "#server/services/lease/advance.ts";
import { idleWarningAt, warnOfIdle } from "#server/services/lease/warn-of-idle.ts";
import { list } from "#server/services/notice/list.ts";
import { markRead } from "#server/services/notice/mark-read.ts";
import { sweepNotices } from "#server/services/notice/sweep.ts";
import { ask } from "#server/services/quota-request/ask.ts";
import { decide } from "#server/services/quota-request/decide.ts";
import { setPolicy } from "#server/services/team/set-policy.ts";
import { setQuota } from "#server/services/team/set-quota.ts";
import { makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";

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

const MINUTE = 60_000;
const ago = (ms: number) => new Date(Date.now() - ms);
const told = async (person: Person) => (await list(person.ctx)).notices;
const advance = () => inTransaction(world.system, async (tx) => await advanceQueue(tx, "soft"));
const kernel = { kind: "kernel" as const, pid: 1, startTime: 1, label: "kmeans.ipynb" };

/** A request made so long ago. */
async function asks(owner: Person, teamId: string, milli: number, msAgo: number): Promise<string> {
  const { id: workspaceId } = await makeWorkspace(world, { owner, teamId });
  const id = newId("req");
  await world.db.insert(leaseRequests).values({
    ...{ id, workspaceId, teamId, userId: owner.id, idempotencyKey: id, gpuType: "soft", milli, memoryBytes: 0 },
    ...{ owner: kernel, state: "queued" as const, createdAt: ago(msAgo), lastPolledAt: new Date() },
    waitUntil: new Date(Date.now() + MINUTE),
  });
  return id;
}

/** A lease of a whole device, held and without work for so long. */
async function holds(owner: Person, gpu: 0 | 1, msAgo: number, borrowed = false): Promise<string> {
  const requestId = await asks(owner, world.team, 1000, msAgo);
  await world.db.update(leaseRequests).set({ state: "granted" }).where(eq(leaseRequests.id, requestId));
  await world.db.insert(leases).values({
    ...{ id: newId("lea"), requestId, workspaceId: "ws", teamId: world.team, userId: owner.id },
    ...{ gpuId: world.gpuIds[gpu], serverId: world.serverId, gpuType: "soft", milli: 1000, memoryBytes: 8 * 2 ** 30 },
    ...{ owner: kernel, state: "active" as const, epoch: 1, borrowed: borrowed ? 1 : 0 },
    ...{ grantedAt: ago(msAgo), claimedAt: ago(msAgo), ownerSeenAt: new Date() },
    expiresAt: new Date(Date.now() + 60 * MINUTE),
  });
  return requestId;
}

it("whoever holds a GPU that will be taken back is told for whom and until when, and when it may stay after all", async () => {
  await setQuota(world.admin.ctx, { teamId: world.team, gpuType: "soft", guaranteedMilli: 500, limitMilli: 2000 });
  await holds(world.member, 0, 10 * MINUTE);
  await holds(world.colleague, 1, 9 * MINUTE, true);
  const claim = await asks(world.outsider, world.otherTeam, 500, 0);
  await advance();
  const all = [...(await told(world.member)), ...(await told(world.colleague))];
  expect(all).toMatchObject([{ kind: "reclaim", title: "Your 1.0 soft will be taken back", readAt: null }]);
  expect(all[0]?.body).toContain("Team nlp needs what is guaranteed to it. kmeans.ipynb lives on");
  expect(Date.parse(all[0]?.dueAt ?? "")).toBeGreaterThan(Date.now() + MINUTE);
  await advance();
  expect(await world.db.select().from(notices)).toHaveLength(1);
  await world.db.update(leaseRequests).set({ state: "cancelled" }).where(eq(leaseRequests.id, claim));
  await advance();
  expect(await world.db.select().from(notices)).toEqual([]);
});

it("who waited long enough to look elsewhere is told that the turn has come; who did not is not", async () => {
  await asks(world.member, world.team, 250, MINUTE);
  await asks(world.colleague, world.team, 250, 0);
  await advance();
  expect(await told(world.member)).toMatchObject([
    { kind: "granted", title: "You have 0.25 soft", body: "kmeans.ipynb waited 60 s for it." },
  ]);
  expect(await told(world.colleague)).toEqual([]);
});

it("a lease without GPU work is warned of once for each idle stretch, and at the team's own time", async () => {
  const requestId = await holds(world.member, 0, 17 * MINUTE);
  await warnOfIdle(world.system);
  await warnOfIdle(world.system);
  const [first, ...others] = await told(world.member);
  expect(first).toMatchObject({ kind: "idle", title: "Your 1.0 soft does nothing" });
  expect(others).toEqual([]);
  expect(Math.abs(Date.parse(first?.dueAt ?? "") - Date.now() - 3 * MINUTE)).toBeLessThan(10_000);
  await world.db
    .update(leases)
    .set({ usageAt: ago(MINUTE) })
    .where(eq(leases.requestId, requestId));
  await warnOfIdle(world.system);
  expect(await told(world.member)).toHaveLength(1);
  await setPolicy(world.admin.ctx, { teamId: world.team, maxLeaseSeconds: null, idleSeconds: 70, coTenancy: "any" });
  await warnOfIdle(world.system);
  expect(await told(world.member)).toHaveLength(2);
});

it("an idle warning comes a fifth before the end, and never more than five minutes", () => {
  expect(idleWarningAt(20 * MINUTE, 20 * MINUTE)).toBe(16 * MINUTE);
  expect(idleWarningAt(100 * MINUTE, 100 * MINUTE)).toBe(95 * MINUTE);
});

it("a lead is told of a request for more, and the member of its answer", async () => {
  const asked = await ask(world.member.ctx, {
    ...{ teamId: world.team, gpuType: "soft", limitMilli: 500, reason: "a paper" },
    endsAt: new Date(Date.now() + 60 * MINUTE).toISOString(),
  });
  expect(await told(world.lead)).toMatchObject([
    { title: "Max asks for 0.5 soft more for team vision", body: "a paper" },
  ]);
  await decide(world.lead.ctx, { id: asked.id, approve: true });
  expect(await told(world.member)).toMatchObject([{ title: "0.5 soft more for team vision: approved" }]);
  expect(await told(world.colleague)).toEqual([]);
});

const serverIs = async (values: Partial<typeof gpuServers.$inferInsert>) =>
  await world.db.update(gpuServers).set(values).where(eq(gpuServers.id, world.serverId));
const titles = async () => (await told(world.lead)).map(({ title }) => title);

it("a lead is told when a lost server leaves the team less than it is guaranteed, and once when that is over", async () => {
  const heard = ago(MINUTE);
  const less = () => tellOfLess(world.system, { serverId: world.serverId, lastHeard: heard });
  await serverIs({ state: "online", lastSeenAt: heard });
  expect(await lose(world.system, { serverId: world.serverId, lastHeard: new Date() })).toBe(true);
  expect(await titles()).toEqual([]);
  await less();
  await less();
  const [first, ...others] = await told(world.lead);
  expect(first).toMatchObject({ kind: "guarantee", title: "Team vision is guaranteed 0.0 of its 0.5 soft now" });
  expect(first?.body).toContain("GPU server gpu-1 does not answer");
  expect([...others, ...(await told(world.member))]).toEqual([]);
  const back = () => tellOfBack(world.system);
  await back();
  await serverIs({ state: "draining", drainedAt: new Date(), lastSeenAt: new Date() });
  await back();
  expect(await titles()).toHaveLength(1);
  await serverIs({ state: "online", drainedAt: null });
  await back();
  await back();
  expect(await titles()).toEqual([
    "Team vision is guaranteed its 0.5 soft again",
    "Team vision is guaranteed 0.0 of its 0.5 soft now",
  ]);
});

it("a server that comes back at once, and devices that took no leases before, leave nothing to tell", async () => {
  const heard = ago(MINUTE);
  const less = () => tellOfLess(world.system, { serverId: world.serverId, lastHeard: heard });
  await serverIs({ state: "online", lastSeenAt: heard });
  await lose(world.system, { serverId: world.serverId, lastHeard: heard });
  await serverIs({ state: "online", lastSeenAt: new Date() });
  await less();
  await lose(world.system, { serverId: world.serverId, lastHeard: new Date() });
  await less();
  await tellOfBack(world.system);
  await serverIs({ state: "lost", lastSeenAt: heard, drainedAt: heard });
  await less();
  await serverIs({ drainedAt: null });
  const [drained, gone] = world.gpuIds;
  await world.db.update(gpus).set({ drainedAt: heard }).where(eq(gpus.id, drained));
  await world.db.update(gpus).set({ state: "lost" }).where(eq(gpus.id, gone));
  await less();
  expect(await titles()).toEqual([]);
});

it("are one's own to read, one by one or all, and are forgotten after two months", async () => {
  await asks(world.member, world.team, 250, MINUTE);
  await asks(world.member, world.team, 250, MINUTE);
  await advance();
  const [newest] = await told(world.member);
  expect(await markRead(world.colleague.ctx, { ids: [newest?.id ?? ""] })).toEqual({
    total: 0,
    next: null,
    notices: [],
    unread: 0,
  });
  expect(await list(world.member.ctx)).toMatchObject({ unread: 2 });
  expect(await markRead(world.member.ctx, { ids: [newest?.id ?? ""] })).toMatchObject({ unread: 1 });
  expect(await markRead(world.member.ctx)).toMatchObject({ unread: 0 });
  expect((await list(world.member.ctx, { limit: 1 })).notices).toHaveLength(1);
  await sweepNotices({ ...world.system, now: () => new Date(Date.now() + 61 * 86_400_000) });
  expect(await told(world.member)).toEqual([]);
});

it("are read a page at a time, all of them or the unread ones, and nobody else's", async () => {
  const ids = Array.from({ length: 5 }, () => newId("ntc"));
  const of = (userId: string, id: string, minutes: number) => ({
    ...{
      id,
      userId,
      kind: "granted" as const,
      key: id,
      title: id,
      body: "",
      href: "/gpus",
      createdAt: ago(minutes * MINUTE),
    },
  });
  // Two were told at the same moment.
  const minutes = [1, 2, 2, 3, 4];
  await world.db.insert(notices).values(ids.map((id, index) => of(world.member.id, id, minutes[index] ?? 0)));
  await world.db.insert(notices).values(of(world.colleague.id, newId("ntc"), 2));
  const walk = async (show: "all" | "unread") => {
    const pages: string[][] = [];
    for (let after: string | undefined | null; after !== null; ) {
      const page = await list(world.member.ctx, { limit: 2, show, ...(after === undefined ? {} : { after }) });
      pages.push(page.notices.map(({ id }) => id));
      expect(page.total).toBe(show === "all" ? 5 : page.unread);
      after = page.next;
    }
    return pages;
  };
  const all = await walk("all");
  expect(all.map(({ length }) => length)).toEqual([2, 2, 1]);
  expect(all.flat().sort()).toEqual([...ids].sort());
  expect([all[0]?.[0], all[2]?.[0]]).toEqual([ids[0], ids[4]]);
  await markRead(world.member.ctx, { ids: [ids[0] ?? "", ids[4] ?? ""] });
  expect((await walk("unread")).flat().sort()).toEqual([ids[1], ids[2], ids[3]].sort());
  // Whoever comes from a page whose last one was read since goes on where it stood.
  expect((await list(world.member.ctx, { show: "unread", after: ids[0] ?? "" })).notices).toHaveLength(3);
  const theirs = (await list(world.colleague.ctx)).notices[0]?.id ?? "";
  await expect(list(world.member.ctx, { after: theirs })).rejects.toThrow(/^after: No row/);
});
