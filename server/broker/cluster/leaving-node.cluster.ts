/** GPU servers whose node is cordoned or deleted, by a real API server; that they are on a machine is not needed for it. */
import { PatchStrategy, type V1Node } from "@kubernetes/client-node";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { principalFromCredential } from "#server/auth/principal-from-credential.ts";
import type { Context } from "#server/context.ts";
import { auditEvents, gpuServers, leases } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { smallSettings, testCluster } from "#server/launchers/kubernetes/testing.ts";
import { createLive } from "#server/live.ts";
import { logger } from "#server/log.ts";
import { request } from "#server/services/lease/request.ts";
import { list as noticesOf } from "#server/services/notice/list.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { startClusterWatch } from "./cluster-watch.ts";

const cluster = testCluster();
const NODE: V1Node = { apiVersion: "v1", kind: "Node", metadata: { name: "leaves" }, spec: { unschedulable: false } };
const settings = smallSettings(cluster, "leaving-node", {
  gpuServers: { namespace: "sluice", account: "gpud", cordonAfterSeconds: 0 },
});
const POLL = { timeout: 30_000, interval: 100 };

let database: TestDatabase;
let world: World;
let borrower: Context;
let live: ReturnType<typeof createLive>;
let watch: ReturnType<typeof startClusterWatch>;

const begin = () => startClusterWatch({ database, live, log: logger("test"), settings });

beforeAll(async () => {
  database = await useTestDatabase({ max: 10 });
  world = await makeWorld(database.db);
  await database.db.update(gpuServers).set({ nodeName: "leaves" }).where(eq(gpuServers.id, world.serverId));
  const { credential } = await makeWorkspace(world, { owner: world.member });
  borrower = { ...world.system, principal: await principalFromCredential(database.db, `Bearer ${credential}`) };
  live = createLive(database.sql);
  await cluster.objects.create({ ...NODE });
  watch = begin();
});
afterAll(async () => {
  await watch?.stop();
  await live?.close();
  await cluster.objects.delete({ ...NODE }).catch(() => undefined);
  await database?.drop();
});

const drained = async () => {
  const [server] = await database.db.select().from(gpuServers).where(eq(gpuServers.id, world.serverId));
  return server?.drainedAt !== null;
};
const attach = async (key: number) =>
  await request(borrower, {
    ...{ requestId: `00000000-0000-4000-8000-${String(key).padStart(12, "0")}`, amount: "0.5", waitSeconds: 600 },
    owner: { kind: "process", pid: key, startTime: 1, label: "notebook" },
  });

const cordon = async (unschedulable: boolean) =>
  await cluster.objects.patch(
    { ...NODE, spec: { unschedulable } },
    ...([undefined, undefined, "tester", undefined, PatchStrategy.MergePatch] as const),
  );

it("gives who holds a GPU of a cordoned node notice, and takes that back when the node stays", async () => {
  expect((await attach(1)).state).toBe("granted");
  const until = async () => (await database.db.select({ releaseAt: leases.releaseAt }).from(leases))[0]?.releaseAt;
  const told = async () => (await noticesOf(world.member.ctx, {})).notices.map(({ title }) => title);
  expect(await until()).toBeNull();
  await cordon(true);
  await expect.poll(until, POLL).toBeInstanceOf(Date);
  const left = ((await until())?.getTime() ?? 0) - Date.now();
  expect(left / 1000).toBeGreaterThan(settings.moveSeconds - 60);
  expect(left / 1000).toBeLessThanOrEqual(settings.moveSeconds);
  expect(await told()).toEqual(["Your 0.5 soft will be taken back"]);
  await cordon(false);
  await expect.poll(until, POLL).toBeNull();
  expect(await told()).toEqual([]);
});

it("keeps what is leased on a node that is deleted, and places nothing new there", async () => {
  await cluster.objects.delete({ ...NODE });
  await expect.poll(drained, POLL).toBe(true);
  const [held] = await database.db.select({ endedAt: leases.endedAt }).from(leases);
  expect(held?.endedAt).toBeNull();
  expect((await attach(2)).state).toBe("queued");
  const followed = eq(auditEvents.action, "gpu-server.follow-node");
  const entries = await database.db.select().from(auditEvents).where(followed).orderBy(auditEvents.seq);
  expect(entries.map(({ detail }) => detail)).toEqual(
    ["cordoned", null, "deleted"].map((closed) => ({ nodeName: "leaves", closed })),
  );
});

it("opens the server when a node of that name joins again, and grants to who waits", async () => {
  await cluster.objects.create({ ...NODE });
  await expect.poll(drained, POLL).toBe(false);
  await expect.poll(async () => await database.db.$count(leases), POLL).toBe(2);
});

it("finds out what was deleted while no broker looked", async () => {
  await watch.stop();
  await cluster.objects.delete({ ...NODE });
  watch = begin();
  await expect.poll(drained, POLL).toBe(true);
});
