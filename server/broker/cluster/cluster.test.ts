/** What the broker does for a cluster, as far as a database shows it; the cluster itself is in chart.cluster.ts. */
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { principalFromCredential } from "#server/auth/principal-from-credential.ts";
import { lookForOrphans } from "#server/broker/reconciler/orphans.ts";
import { openWorkspaces } from "#server/broker/reconciler/state.ts";
import { auditEvents, gpuServers, gpus, leaseRequests, memberships, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { wishOf } from "#server/launchers/kubernetes/pods/wish.ts";
import type { PodSettings } from "#server/launchers/kubernetes/settings.ts";
import type { Launcher } from "#server/launchers/launcher.ts";
import { logger } from "#server/log.ts";
import { connect } from "#server/services/gpu-server/connect.ts";
import { drain } from "#server/services/gpu-server/drain.ts";
import { followNode } from "#server/services/gpu-server/follow-node.ts";
import { admitServer } from "#server/services/gpu-server/join.ts";
import { poolState } from "#server/services/gpu-server/pool-state.ts";
import { remove } from "#server/services/gpu-server/remove.ts";
import { read } from "#server/services/health/read.ts";
import { poll } from "#server/services/lease/poll.ts";
import { request } from "#server/services/lease/request.ts";
import { end } from "#server/services/pod/end.ts";
import { admitPod, join } from "#server/services/pod/join.ts";
import { listOpen } from "#server/services/pod/list-open.ts";
import { news } from "#server/services/pod/news.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { get } from "#server/services/workspace/get.ts";
import { list } from "#server/services/workspace/list.ts";

let database: TestDatabase;
let world: World;

beforeAll(async () => {
  database = await useTestDatabase({ max: 4 });
  world = await makeWorld(database.db);
});
afterAll(async () => await database.drop());

let uids = 0;
const account = (pod: string, uid = `uid-${uids++}`) => ({
  ...{ namespace: "ml", account: "default", name: "system:serviceaccount:ml:default", node: "node-1" },
  pod: { name: pod, uid },
});
const admitted = async (pod: ReturnType<typeof account>, team = "vision", person = world.member.email) =>
  await admitPod(world.system, { account: pod, team, person, gpuType: "soft" });
const context = async ({ credential }: { credential: string }) => ({
  ...world.system,
  principal: await principalFromCredential(database.db, `Bearer ${credential}`),
});
const wanted = (amount: string, key: string, waitSeconds = 600) => ({
  ...{ requestId: `00000000-0000-4000-8000-${key.padStart(12, "0")}`, amount, waitSeconds },
  owner: { kind: "process" as const, pid: 1, startTime: 1, label: "ml/train" },
});
/** Our id of a request, by the client's own key. */
const idOf = async ({ requestId }: { requestId: string }) => {
  const key = eq(leaseRequests.idempotencyKey, requestId);
  const [found] = await database.db.select({ id: leaseRequests.id }).from(leaseRequests).where(key);
  return found?.id ?? "";
};
const watcher = () => ({ changed: async () => true, close: () => {} });

it("lets a pod borrow for its namespace's team in the name of who answers for it, until it ends", async () => {
  const pod = account("train");
  const joined = await admitted(pod);
  const ctx = await context(joined);
  expect(ctx.principal).toMatchObject({ kind: "workspace", teamId: world.team, userId: world.member.id });
  const answer = await request(ctx, wanted("0.5", "1"));
  expect(answer.state).toBe("granted");
  expect(await end(world.system, { podUid: pod.pod.uid })).toBe(true);
  expect((await context(joined)).principal.kind).toBe("anonymous");
  expect(await end(world.system, { podUid: pod.pod.uid })).toBe(false);
  await expect(admitted(pod)).rejects.toThrow("has ended");
  const audited = await database.db.select().from(auditEvents).where(eq(auditEvents.subject, joined.workspaceId));
  expect(audited.map(({ action }) => action)).toEqual(["pod.join", "pod.end"]);
});

it("gives a pod that asks again a new credential and voids the old one; another pod of its name ends it", async () => {
  const pod = account("again");
  const [first, second] = [await admitted(pod), await admitted(pod)];
  expect(second.workspaceId).toBe(first.workspaceId);
  expect((await context(first)).principal.kind).toBe("anonymous");
  const namesake = await admitted(account("again"));
  expect((await context(second)).principal.kind).toBe("anonymous");
  expect((await listOpen(world.system)).map(({ podUid }) => podUid)).not.toContain(pod.pod.uid);
  expect((await context(namesake)).principal.kind).toBe("workspace");
});

it("refuses where nobody of the team answers for the namespace", async () => {
  await expect(admitted(account("x"), "vision", world.outsider.email)).rejects.toThrow("works in no team named vision");
  await expect(admitted(account("x"), "robots")).rejects.toThrow("robots");
  const leaving = await admitted(account("left"), "vision", world.colleague.email);
  await database.db.delete(memberships).where(eq(memberships.userId, world.colleague.id));
  expect((await context(leaving)).principal.kind).toBe("anonymous");
  await expect(join(world.system, { token: "a.b.c", gpuType: "soft" })).rejects.toThrow("do not borrow GPUs");
});

it("is no workspace to people, and nothing to launchers", async () => {
  const { workspaceId } = await admitted(account("hidden"));
  await expect(get(world.member.ctx, { id: workspaceId })).rejects.toThrow("not an id of this kind");
  const { workspaces: seen } = (await list(world.admin.ctx, {})) as { workspaces: { id: string }[] };
  expect(seen.map(({ id }) => id)).not.toContain(workspaceId);
  expect(await openWorkspaces(database.db, new Date())).not.toContain(workspaceId);
});

it("tells on the pod that it waits and why, and what it gets", async () => {
  const pod = account("waits");
  const ctx = await context(await admitted(pod, "nlp", world.outsider.email));
  await drain(world.system, { serverId: world.serverId, draining: true });
  const waiting = await request(ctx, wanted("0.5", "2"));
  expect(waiting.state).toBe("queued");
  const requestId = await idOf(waiting);
  const told = await news(world.system, { requestId });
  expect(told).toMatchObject({ podUid: pod.pod.uid, reason: "GpuQueued" });
  expect(told?.message).toMatch(/^Waits for 0\.5 soft, 1 of 1 in the queue, until /);
  await drain(world.system, { serverId: world.serverId, draining: false });
  expect((await poll(ctx, { requestId: waiting.requestId }, watcher)).state).toBe("granted");
  const then = await news(world.system, { requestId });
  expect(then).toMatchObject({ reason: "GpuBorrowed", message: expect.stringContaining("on gpu-1") as string });
  await end(world.system, { podUid: pod.pod.uid });
});

it("tells on the pod that its wait is over, and what it waited for", async () => {
  const pod = account("waits-in-vain");
  const ctx = await context(await admitted(pod));
  await drain(world.system, { serverId: world.serverId, draining: true });
  const waiting = await request(ctx, wanted("0.5", "3", 90));
  expect(waiting.state).toBe("queued");
  const requestId = await idOf(waiting);
  const queued = await news(world.system, { requestId });
  const pollAfter = async (seconds: number) =>
    await poll({ ...ctx, now: () => new Date(Date.now() + seconds * 1000) }, { requestId: waiting.requestId }, watcher);
  expect((await pollAfter(80)).state).toBe("queued");
  expect(await news(world.system, { requestId })).toEqual(queued);
  expect((await pollAfter(91)).state).toBe("expired");
  const told = await news(world.system, { requestId });
  expect(told).toMatchObject({ podUid: pod.pod.uid, reason: "GpuNotBorrowed" });
  expect(told?.message).toMatch(/^No GPU came free in the time that the pod waits: .*drain/);
  // Under another name than the event that it waits: otherwise the cluster would take this for that one.
  expect(told?.about).not.toBe(queued?.about);
  await drain(world.system, { serverId: world.serverId, draining: false });
  await end(world.system, { podUid: pod.pod.uid });
});

it("borrows for the team and of the type that the pod's labels name, not of those that others get", async () => {
  const places = [
    { team: "vision", person: world.member.email },
    { team: "nlp", person: world.outsider.email },
  ];
  const settings: PodSettings = {
    ...{ image: "localhost/client:1", pull: "Never", imagePullSecrets: [], audience: "sluice" },
    ...{ gpuType: "soft", namespaces: { ml: places } },
  };
  const asks = async (labels: Record<string, string>) => {
    const asked = wishOf({ "sluice.dev/gpu": "0.5", ...labels }, "ml", settings);
    if (!asked.ok) throw new Error(asked.message);
    const { amount, waitSeconds, ...wish } = asked.wish;
    const ctx = await context(await admitPod(world.system, { account: account("labelled"), ...wish }));
    return { ctx, answer: await request(ctx, wanted(amount, `${uids}`, waitSeconds)) };
  };
  const { ctx, answer } = await asks({ "sluice.dev/gpu-team": "nlp" });
  expect(ctx.principal).toMatchObject({ teamId: world.otherTeam, userId: world.outsider.id });
  expect(answer).toMatchObject({ state: "granted", lease: { gpuType: "soft" } });
  const other = await asks({ "sluice.dev/gpu-type": "h200" });
  expect(other.ctx.principal).toMatchObject({ teamId: world.team, userId: world.member.id });
  expect(other.answer).toMatchObject({
    state: "refused",
    reason: { message: expect.stringContaining("h200") as string },
  });
});

it("drains a node's GPU servers while it is cordoned, and leaves what an admin has drained", async () => {
  await database.db.update(gpuServers).set({ nodeName: "node-1" }).where(eq(gpuServers.id, world.serverId));
  const states = async () => {
    const [server] = await database.db.select().from(gpuServers).where(eq(gpuServers.id, world.serverId));
    const devices = await database.db.select().from(gpus).where(eq(gpus.serverId, world.serverId));
    return [server?.state, ...devices.map((device) => poolState(device, server?.state ?? "removed"))];
  };
  const follow = async (cordoned: boolean) =>
    await followNode(world.system, { nodeName: "node-1", closed: cordoned ? "cordoned" : undefined });
  expect(await follow(false)).toEqual([]);
  expect(await follow(true)).toEqual([world.serverId]);
  expect(await follow(true)).toEqual([]);
  expect(await states()).toEqual(["draining", "draining", "draining"]);
  expect(await follow(false)).toEqual([world.serverId]);
  expect(await states()).toEqual(["online", "active", "active"]);
  await drain(world.admin.ctx, { serverId: world.serverId, draining: true });
  expect([await follow(true), await follow(false)]).toEqual([[], []]);
  expect(await states()).toEqual(["draining", "draining", "draining"]);
  // The same of one whose gpud is away, and of one that is drained after its node.
  await database.db.update(gpuServers).set({ state: "lost" }).where(eq(gpuServers.id, world.serverId));
  const drained = async () => {
    const [server] = await database.db.select().from(gpuServers).where(eq(gpuServers.id, world.serverId));
    return server?.drainedAt !== null;
  };
  expect([await follow(true), await follow(false)]).toEqual([[world.serverId], [world.serverId]]);
  expect(await drained()).toBe(true);
  await drain(world.admin.ctx, { serverId: world.serverId, draining: false });
  await follow(true);
  await drain(world.admin.ctx, { serverId: world.serverId, draining: true });
  await follow(false);
  expect(await drained()).toBe(true);
  await expect(followNode(world.admin.ctx, { nodeName: "node-1", closed: "cordoned" })).rejects.toThrow(
    "may not do this",
  );
});

it("lets a pod's token bring one GPU server into the pool, and the next when that one was removed", async () => {
  const pod = account("gpud");
  const joining = (key: string, of = pod) =>
    admitServer(world.system, { token: "of the pod", name: "gpud", publicKey: key.padEnd(43, "A") }, of);
  const rowOf = async (id: string) =>
    (await database.db.select().from(gpuServers).where(eq(gpuServers.id, id))).map(({ podUid }) => podUid);
  // Two at the same time, as well.
  const tried = await Promise.allSettled([joining("one"), joining("two")]);
  const [joined] = tried.flatMap((one) => (one.status === "fulfilled" ? [one.value.serverId] : []));
  const refused = tried.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : []));
  expect(refused).toEqual([expect.stringContaining("The pod gpud has another GPU server in the pool. Delete the pod")]);
  await expect(joining("three")).rejects.toThrow("has another GPU server");
  const key = tried[0].status === "fulfilled" ? "one" : "two";
  expect(await joining(key), "it keeps its place").toEqual({ serverId: joined });

  // Its successor on that node has its key, and proves that when it connects.
  const next = account("gpud-next");
  const connecting = async (serverId: string, of?: ReturnType<typeof account>) =>
    await connect(
      world.system,
      {
        ...{ type: "hello", serverId, version: "0.1.0", protocol: 2, signature: "", devices: [], held: [] },
        ...{ dataAddress: "tcp://127.0.0.1:1", tlsFingerprint: null },
      },
      of,
    );
  expect(await joining(key, next)).toEqual({ serverId: joined });
  expect(await rowOf(joined ?? ""), "a key that is only shown moves nothing").toEqual([pod.pod.uid]);
  await connecting(joined ?? "", next);
  expect(await rowOf(joined ?? "")).toEqual([next.pod.uid]);
  // While the cluster does not say whose it is.
  await connecting(joined ?? "");
  expect(await rowOf(joined ?? "")).toEqual([next.pod.uid]);
  await expect(joining("four", next)).rejects.toThrow("The pod gpud-next has another GPU server");
  const other = await joining("five");
  await expect(connecting(joined ?? "", pod), "in a pod with a server of its own").rejects.toThrow(
    "another GPU server",
  );
  await remove(world.admin.ctx, { serverId: joined ?? "" });
  expect((await joining("four", next)).serverId).not.toBe(joined);
  expect(await rowOf(other.serverId)).toEqual([pod.pod.uid]);
});

it("tells what a launcher finds of workspaces that nobody knows, and deletes none of it", async () => {
  const { workspaceId } = await admitted(account("known"));
  const orphan = { kind: "Secret", namespace: "sluice-t", name: "ws-a", workspaceId: "ws-a" };
  let left = [orphan];
  const launcher = {
    belongings: async () => [...left, { ...orphan, name: workspaceId, workspaceId }],
  } as Partial<Launcher> as Launcher;
  const launchers = new Map([
    ["kubernetes", launcher],
    ["local", {} as Launcher],
  ]);
  expect(await lookForOrphans(database.db, launchers, logger("test"))).toEqual([orphan]);
  const [told] = await database.db.select().from(auditEvents).where(eq(auditEvents.action, "workspace.find-orphans"));
  expect(told?.detail).toEqual({ launcher: "kubernetes", found: [orphan], total: 1 });
  expect(await database.db.select().from(workspaces).where(eq(workspaces.id, "ws-a"))).toEqual([]);

  const shown = async () => (await read(world.admin.ctx)).components.filter(({ kind }) => kind === "orphan");
  const claim = { ...orphan, kind: "PersistentVolumeClaim" };
  left = [orphan, claim];
  await lookForOrphans(database.db, launchers, logger("test"));
  expect(await shown()).toMatchObject([
    { name: "Secret sluice-t/ws-a", next: "Nothing here uses it: kubectl --namespace sluice-t delete secret ws-a" },
    { name: "PersistentVolumeClaim sluice-t/ws-a", state: "warning", next: expect.stringContaining("home") as string },
  ]);
  const entries = async () => await database.db.$count(auditEvents, eq(auditEvents.action, "workspace.find-orphans"));
  const before = await entries();
  await lookForOrphans(database.db, launchers, logger("test"));
  expect(await entries()).toBe(before);
  left = Array.from({ length: 52 }, (_, index) => ({ ...orphan, name: `ws-${index}` }));
  await lookForOrphans(database.db, launchers, logger("test"));
  expect((await shown()).map(({ name }) => name)).toContain("2 more on kubernetes");
  left = [];
  await lookForOrphans(database.db, launchers, logger("test"));
  expect(await shown()).toEqual([]);
});

it("calls nothing left behind that was launched or removed while a launcher looked", async () => {
  const of = (workspaceId: string) => ({ kind: "Service", namespace: "sluice-t", name: workspaceId, workspaceId });
  const goes = account("removed-meanwhile");
  const removed = await admitted(goes);
  const launcher = {
    belongings: async () => {
      const seen = [of(removed.workspaceId)];
      await end(world.system, { podUid: goes.pod.uid });
      return [...seen, of((await admitted(account("launched-meanwhile"))).workspaceId)];
    },
  } as Partial<Launcher> as Launcher;
  expect(await lookForOrphans(database.db, new Map([["kubernetes", launcher]]), logger("test"))).toEqual([]);
});
