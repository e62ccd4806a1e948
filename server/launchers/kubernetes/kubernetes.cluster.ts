/** Workspaces as pods of a real Kubernetes: broker, reconciler, gateway and gpud are the real ones. */
import { setTimeout as sleep } from "node:timers/promises";
import type { KubernetesObject, V1Service } from "@kubernetes/client-node";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Broker, startBroker } from "#server/broker/broker.ts";
import { type Reconciler, startReconciler } from "#server/broker/reconciler/reconciler.ts";
import { gpuServers, gpus, images, imageVersions, workspaceEvents, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { env, resetEnv } from "#server/env.ts";
import { type Gateway, startGateway } from "#server/gateway/gateway.ts";
import { send } from "#server/gateway/testing.ts";
import { newId } from "#server/ids.ts";
import { runCode } from "#server/jupyter/run-code.ts";
import { logger } from "#server/log.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { handover } from "#server/services/workspace/handover.ts";
import { remove } from "#server/services/workspace/remove.ts";
import { start } from "#server/services/workspace/start.ts";
import { stop } from "#server/services/workspace/stop.ts";
import { KubernetesLauncher } from "./kubernetes-launcher.ts";
import { namespaceOf, WORKSPACE_LABEL } from "./objects.ts";
import { parseSettings } from "./settings.ts";
import { makeVolumes, STORAGE_CLASS, startGpud, testCluster } from "./testing.ts";

const cluster = testCluster();
const small = { cpu: { request: "100m", limit: "2" }, memory: { request: "256Mi", limit: "2Gi" } };
const settings = parseSettings({
  kubeconfig: cluster.kubeconfig,
  environments: {
    "cuda-python": { image: cluster.workspaceImage, size: "small", pull: "Never" },
    "no-image": { image: "localhost/is-not-there:1", size: "small" },
    "too-large": { image: cluster.workspaceImage, size: "large", pull: "Never" },
    "no-room": { image: cluster.workspaceImage, size: "wide", pull: "Never" },
    "ends-at-once": { image: "localhost/pause:1", size: "small", pull: "Never" },
  },
  sizes: {
    small,
    large: { ...small, memory: { request: "256Mi", limit: "64Gi" } },
    wide: { ...small, cpu: { request: "500", limit: "500" } },
  },
  home: { size: "1Gi", storageClass: STORAGE_CLASS },
  team: { quota: { "limits.memory": "6Gi" } },
  network: { from: [{ addresses: `${cluster.address}/32` }], to: [{ addresses: `${cluster.address}/32` }] },
  startSeconds: 60,
});

let database: TestDatabase;
let world: World;
let broker: Broker;
let gateway: Gateway;
let launcher: KubernetesLauncher;
let reconciler: Reconciler;
let gpud: Awaited<ReturnType<typeof startGpud>>;
let dropVolumes: () => Promise<void>;
const made: string[] = [];

beforeAll(async () => {
  database = await useTestDatabase({ max: 10 });
  Object.assign(process.env, { SLUICE_LAUNCHERS: "kubernetes", SLUICE_GATEWAY_URL: "http://localhost:3002" });
  resetEnv();
  broker = await startBroker({ database, env: env(), log: logger("broker"), port: 0, host: "0.0.0.0" });
  process.env.SLUICE_BROKER_URL = `http://${cluster.address}:${broker.port}`;
  resetEnv();
  world = await makeWorld(database.db);
  // The servers of that world are rows without machines.
  await database.db.delete(gpus);
  await database.db.delete(gpuServers);
  for (const name of Object.keys(settings.environments).filter((one) => one !== "cuda-python"))
    await addToCatalogue(name);
  dropVolumes = await makeVolumes(cluster, 8);
  const { token } = await createJoinToken(world.admin.ctx);
  gpud = await startGpud(cluster, { broker: `http://127.0.0.1:${broker.port}`, token });
  await beginReconciling();
  gateway = await startGateway(database, {
    host: "localhost",
    url: "http://localhost:3002",
    portalUrl: "http://localhost:3000",
    listen: "127.0.0.1",
    port: 0,
    log: logger("gateway"),
  });
});

afterAll(async () => {
  await reconciler?.stop();
  for (const id of made) await launcher.remove(id).catch((error: unknown) => console.error(error));
  await launcher?.close();
  await gateway?.close();
  await gpud?.stop();
  await broker?.stop();
  await dropVolumes?.();
  await database?.drop();
});

async function beginReconciling(): Promise<void> {
  launcher = new KubernetesLauncher(settings);
  reconciler = await startReconciler(database, { launchers: new Map([["kubernetes", launcher]]) });
}

async function addToCatalogue(name: string): Promise<void> {
  const imageId = newId("img");
  await database.db.insert(images).values({ id: imageId, name, title: name, description: "For tests." });
  const version = { version: "0123456789ab", state: "approved", buildState: "ready", spec: {} } as const;
  await database.db.insert(imageVersions).values({ id: newId("imv"), imageId, ...version });
}

async function launch(name: string, image = "cuda-python"): Promise<string> {
  const { id } = await create(world.member.ctx, { name, image });
  made.push(id);
  return id;
}

const row = async (id: string) => {
  const [found] = await database.db.select().from(workspaces).where(eq(workspaces.id, id));
  if (found === undefined) throw new Error("no row");
  return found;
};
const observed = async (id: string, wanted: string) => {
  const settled = ["running", "failed", "stopped", "removed"];
  await expect
    .poll(
      async () => {
        const { observed: seen, message } = await row(id);
        return settled.includes(seen) && message !== null ? `${seen}: ${message}` : seen;
      },
      { timeout: 90_000, interval: 100 },
    )
    .toMatch(new RegExp(`^${wanted}`));
};
const told = async (id: string) =>
  (
    await database.db
      .select()
      .from(workspaceEvents)
      .where(eq(workspaceEvents.workspaceId, id))
      .orderBy(workspaceEvents.seq)
  )
    .map((event) => event.message)
    .join("\n");
const inNotebook = async (id: string, code: string) => {
  const { endpoint, serverToken } = await row(id);
  return await runCode({ endpoint: endpoint ?? "", token: serverToken ?? "" }, code, { timeoutMs: 60_000 });
};
const left = async (id: string) =>
  (await launcher.orphans(new Set())).filter((orphan) => orphan.workspaceId === id).map(({ kind }) => kind);

/** What the gateway gives to the owner's browser, which came by the portal's link. */
async function throughGateway(id: string, wanted: string): Promise<{ status: number; body: string }> {
  const host = `${id}.localhost:3002`;
  const way = new URL((await handover(world.member.ctx, { id })).url);
  const entered = await send(gateway.port, { host, path: `${way.pathname}${way.search}` });
  const cookie = (entered.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
  return await send(gateway.port, { host, path: wanted, headers: { cookie, accept: "text/html" } });
}

const KERNEL = `%gpu attach 0.5
import numpy as np
from numba import cuda
@cuda.jit
def increase(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] += 1
d = cuda.to_device(np.arange(1000))
increase[8, 128](d)
print("sum", int(d.copy_to_host().sum()))
%gpu detach`;

let first: string;

it("launches a pod whose steps tell what the cluster does, and whose kernel answers", async () => {
  const began = Date.now();
  first = await launch("first");
  await observed(first, "running$");
  console.log(`launch ${((Date.now() - began) / 1000).toFixed(1)} s`);
  const lines = await told(first);
  expect(lines).toContain("Preparing the namespace");
  expect(lines).toContain("Scheduled: Successfully assigned");
  expect(lines).toContain("The pod runs on node-1");
  expect(lines).toContain("A notebook kernel computed 6 * 7");
});

it("opens JupyterLab through the gateway", async () => {
  const lab = await throughGateway(first, "/lab");
  expect(lab.status).toBe(200);
  expect(lab.body).toContain("jupyter-config-data");
});

it("lends a GPU of a gpud outside to a notebook in a pod", async () => {
  expect(await inNotebook(first, KERNEL)).toContain("sum 500500");
});

it("gives a pod no account of the cluster, no privilege, and nothing to write but its volumes", async () => {
  const printed = await inNotebook(
    first,
    `import os
print("uid", os.getuid())
print("account", os.path.exists("/var/run/secrets/kubernetes.io"))
print("capabilities", [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")][0])
print("seccomp", [line.split()[1] for line in open("/proc/self/status") if line.startswith("Seccomp:")][0])
for place in ("/opt/sluice/environment/x", "/etc/x", "/home/user/x"):
    try:
        open(place, "w").write("x"); print(place, "written")
    except OSError as error:
        print(place, error.strerror)
print("variables", [name for name in os.environ if "TOKEN" in name or name.endswith("SERVICE_HOST") and not name.startswith("KUBERNETES_")])`,
  );
  expect(printed.split("\n")).toEqual([
    "uid 1000",
    "account False",
    "capabilities 0000000000000000",
    "seccomp 2",
    "/opt/sluice/environment/x Read-only file system",
    "/etc/x Read-only file system",
    "/home/user/x written",
    "variables []",
  ]);
});

it("makes a service again that somebody deleted, at the same address", async () => {
  const { endpoint, teamId } = await row(first);
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: first, namespace: namespaceOf(settings, teamId) },
  };
  const before = await cluster.objects.read<V1Service>(service);
  await cluster.objects.delete(service);
  const uid = async () => (await cluster.objects.read<V1Service>(service).catch(() => before)).metadata?.uid;
  await expect.poll(uid, { timeout: 10_000, interval: 100 }).not.toBe(before.metadata?.uid);
  expect((await row(first)).endpoint).toBe(endpoint);
  // A connection that is begun before the node knows the address again waits in vain.
  const late = async () => await sleep(2_000, { status: 0 });
  const opened = async () => (await Promise.race([throughGateway(first, "/lab"), late()])).status;
  await expect.poll(opened, { timeout: 30_000, interval: 500 }).toBe(200);
});

it("finds running pods after a restart of the broker's reconciler", async () => {
  await reconciler.stop();
  await launcher.close();
  await beginReconciling();
  await expect.poll(async () => (await launcher.observe(first)).state, { timeout: 10_000 }).toBe("running");
  await observed(first, "running$");
  expect((await row(first)).generation).toBe(1);
});

it("says so when somebody deletes the pod, and start brings the files back", async () => {
  await inNotebook(first, 'open("/home/user/kept.txt", "w").write("still here")');
  const { teamId } = await row(first);
  await cluster.objects.delete({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: first, namespace: namespaceOf(settings, teamId) },
  });
  await observed(first, "failed: The pod of this workspace was deleted by somebody else than Sluice");
  await start(world.member.ctx, { id: first });
  await observed(first, "running$");
  expect(await inNotebook(first, 'print(open("/home/user/kept.txt").read())')).toBe("still here");
});

it("keeps the home over a stop, and deletes everything with the workspace", async () => {
  await stop(world.member.ctx, { id: first });
  await observed(first, "stopped");
  expect(await left(first)).toEqual(["PersistentVolumeClaim"]);
  await start(world.member.ctx, { id: first });
  await observed(first, "running$");
  expect(await inNotebook(first, 'print(open("/home/user/kept.txt").read())')).toBe("still here");
  await remove(world.member.ctx, { id: first });
  await observed(first, "removed");
  await expect.poll(() => left(first), { timeout: 15_000 }).toEqual([]);
});

it("names what is wrong when the image is missing", async () => {
  const id = await launch("no image", "no-image");
  await observed(
    id,
    "failed: The workspace did not start. The image localhost/is-not-there:1 cannot be pulled: .*Ask an admin to check its name",
  );
});

it("names the quota that is used up", async () => {
  const id = await launch("too large", "too-large");
  await observed(
    id,
    "failed: The workspace did not start. The team's quota on the cluster is used up: 64Gi of memory \\(limit\\) asked for, \\S+ of 6Gi in use",
  );
});

it("names what no node has, while it waits", async () => {
  const id = await launch("no room", "no-room");
  await expect
    .poll(() => told(id), { timeout: 30_000, interval: 100 })
    .toContain("No node has room for this workspace: too little CPU (it asks for 500) on 1 of 1 node");
  await stop(world.member.ctx, { id });
  await observed(id, "stopped");
});

it("shows the last words of a container that ends at once", async () => {
  const id = await launch("ends at once", "ends-at-once");
  await observed(
    id,
    "failed: The workspace did not start. JupyterLab ends right after its start \\(. times, last with exit code 2\\)",
  );
  expect(await told(id)).toContain("/opt/sluice/start.sh");
});

it("finds what belongs to no workspace", async () => {
  const known = new Set(made);
  expect(await launcher.orphans(known)).toEqual([]);
  const namespace = namespaceOf(settings, world.team);
  const stray: KubernetesObject = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: "stray",
      namespace,
      labels: { "app.kubernetes.io/managed-by": "sluice", [WORKSPACE_LABEL]: "ws-nobodys" },
    },
  };
  await cluster.objects.create(stray);
  expect(await launcher.orphans(known)).toEqual([
    { kind: "Secret", namespace, name: "stray", workspaceId: "ws-nobodys" },
  ]);
  await cluster.objects.delete(stray);
});
