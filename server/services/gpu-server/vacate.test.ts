/** GPU servers of a node whose gpud is to be replaced: who holds them, and when they may go. */
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { principalFromCredential } from "#server/auth/principal-from-credential.ts";
import { gpuServers, gpus, leases } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { request } from "#server/services/lease/request.ts";
import { list as noticesOf } from "#server/services/notice/list.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { drain } from "./drain.ts";
import { followNode } from "./follow-node.ts";
import { forgetParked } from "./forget-parked.ts";
import { isFree } from "./is-free.ts";
import { vacate } from "./vacate.ts";

const nodeName = "node-1";
const HOUR = 3_600_000;
const waits = { nodeName, afterMs: 4 * HOUR, noticeMs: 600_000 };

let database: TestDatabase;
let world: World;
beforeAll(async () => {
  database = await useTestDatabase();
  world = await makeWorld(database.db);
  await database.db.update(gpuServers).set({ nodeName });
});
afterAll(async () => await database.drop());

const after = (ms: number) => ({ ...world.system, now: () => new Date(Date.now() + ms) });
const close = async () => await followNode(world.system, { nodeName, closed: "update" });
const reopen = async () => await followNode(world.system, { nodeName, closed: undefined });
const free = async (ms = 0) => await isFree(after(ms), { nodeName });
const told = async () => (await noticesOf(world.member.ctx, {})).notices.map(({ title }) => title);

let requests = 0;
async function borrow() {
  const { credential } = await makeWorkspace(world, { owner: world.member });
  const principal = await principalFromCredential(database.db, `Bearer ${credential}`);
  const requestId = `00000000-0000-4000-8000-${String(requests++).padStart(12, "0")}`;
  const owner = { kind: "process" as const, pid: 1, startTime: 1, label: "train" };
  const asked = { requestId, amount: "0.5", waitSeconds: 0, owner };
  const answer = await request({ ...world.system, principal }, asked);
  if (answer.state !== "granted") throw new Error("not granted");
  const is = eq(leases.id, answer.lease.id);
  return {
    row: async () => (await database.db.select().from(leases).where(is))[0],
    park: async (told: Partial<typeof leases.$inferInsert> = {}) =>
      await database.db
        .update(leases)
        .set({ state: "ended", endReason: "taken back", parkedBytes: 4096, ...told })
        .where(is),
    end: async () => await database.db.update(leases).set({ state: "ended", parkedBytes: 0 }).where(is),
  };
}

it("is not free while somebody may borrow there, also when an admin opens it in between", async () => {
  expect(await free()).toBe(false);
  expect(await close()).toEqual([world.serverId]);
  expect(await close()).toEqual([]);
  expect(await free()).toBe(true);
  await drain(world.admin.ctx, { serverId: world.serverId, draining: false });
  expect(await free()).toBe(false);
  expect(await close()).toEqual([world.serverId]);
  expect(await free()).toBe(true);
  expect(await reopen()).toEqual([world.serverId]);
});

it("waits for its holders, then gives them notice; what is parked after that keeps it no longer", async () => {
  const held = await borrow();
  await close();
  expect(await vacate(after(3 * HOUR), waits)).toBe(0);
  expect(await held.row()).toMatchObject({ releaseAt: null });
  expect(await vacate(after(5 * HOUR), waits)).toBe(1);
  expect(await vacate(after(5 * HOUR + 60_000), waits)).toBe(0);
  expect((await held.row())?.releaseAt?.getTime()).toBeGreaterThan(Date.now() + 5 * HOUR + 590_000);
  expect(await told()).toEqual(["Your 0.5 soft will be taken back"]);
  expect(await free(6 * HOUR)).toBe(false);
  await held.park();
  expect(await free(5 * HOUR)).toBe(false);
  expect(await free(6 * HOUR)).toBe(true);
  await forgetParked(world.system, { nodeName });
  expect(await held.row()).toMatchObject({ parkedBytes: 0 });
  await reopen();
});

it("tells who has memory parked there, also after a notice for another reason", async () => {
  const held = await borrow();
  const before = new Date(Date.now() - HOUR);
  await held.park({ noticeFor: "req-x", noticeAt: before, releaseAt: before });
  await close();
  expect(await free(9 * HOUR)).toBe(false);
  expect(await vacate(after(5 * HOUR), waits)).toBe(1);
  expect(await told()).toContain("GPU memory kept for your 0.5 soft will be dropped");
  expect(await free(6 * HOUR)).toBe(true);
  await forgetParked(world.system, { nodeName });
  await reopen();
});

it("takes its notices back when it stays", async () => {
  const held = await borrow();
  await close();
  const before = await told();
  await vacate(after(5 * HOUR), waits);
  expect(await told()).toHaveLength(before.length + 1);
  await reopen();
  expect(await held.row()).toMatchObject({ noticeAt: null, releaseAt: null, state: "granted" });
  expect(await told()).toEqual(before);
  await held.end();
});

it("tells of all devices of a lease when the server of one leaves, and takes that back from all", async () => {
  const held = await borrow();
  const lease = await held.row();
  const [server] = await database.db.select().from(gpuServers);
  const [gpu] = await database.db.select().from(gpus);
  if (lease === undefined || server === undefined || gpu === undefined) throw new Error("no rows");
  const other = { id: "gsv-stays", name: "stays", publicKey: "stays", nodeName: null, podUid: null };
  await database.db.insert(gpuServers).values({ ...server, ...other });
  await database.db.insert(gpus).values({ ...gpu, id: "gpu-stays", uuid: "GPU-stays", serverId: other.id });
  const second = { ...lease, id: "lea-second", ordinal: 1, serverId: other.id, gpuId: "gpu-stays" };
  await database.db.insert(leases).values(second);
  const notices = async () => {
    const rows = await database.db.select().from(leases).where(eq(leases.requestId, lease.requestId));
    return rows.map(({ releaseAt }) => releaseAt?.getTime() ?? null);
  };
  await close();
  expect(await vacate(after(5 * HOUR), waits)).toBe(1);
  const [first, of] = await notices();
  expect([typeof first, of]).toEqual(["number", first]);
  expect((await told())[0]).toBe("Your 1.0 soft will be taken back");
  await reopen();
  expect(await notices()).toEqual([null, null]);
  await database.db.delete(leases).where(eq(leases.id, second.id));
  await database.db.delete(gpuServers).where(eq(gpuServers.id, other.id));
  await held.end();
});

it("leaves those alone who hold GPUs of a cordoned node that an admin has opened", async () => {
  await followNode(world.system, { nodeName, closed: "cordoned" });
  await drain(world.admin.ctx, { serverId: world.serverId, draining: false });
  const held = await borrow();
  expect(await vacate(after(9 * HOUR), waits)).toBe(0);
  expect(await held.row()).toMatchObject({ noticeAt: null, releaseAt: null });
  await held.end();
  await reopen();
});
