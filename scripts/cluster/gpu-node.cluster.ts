/** A node with a gpud that the chart has put there: what computes and what waits when it is deleted, and when it is back. */
import { execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { V1Node, V1Pod } from "@kubernetes/client-node";
import { desc, eq, ne } from "drizzle-orm";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { kubernetesVersion } from "#scripts/cluster/build.ts";
import { makeCertificates } from "#scripts/cluster/certificates.ts";
import { addNode, halt, kubectl, makeNamespace, removeNode, resume } from "#scripts/cluster/cluster.ts";
import { loadInto } from "#scripts/cluster/images.ts";
import { type Cluster, clusterAt, POOL } from "#scripts/cluster/place.ts";
import { PAUSE_IMAGE } from "#scripts/cluster/settings.ts";
import { type Broker, startBroker } from "#server/broker/broker.ts";
import { startClusterWatch } from "#server/broker/cluster/cluster-watch.ts";
import { gpuServers, gpus, leaseRequests, leases } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { env, resetEnv } from "#server/env.ts";
import { smallSettings, testCluster } from "#server/launchers/kubernetes/testing.ts";
import { type BuiltEnvironment, ensureEnvironment } from "#server/launchers/local/environment.ts";
import { builtWheel } from "#server/launchers/local/wheel.ts";
import { createLive } from "#server/live.ts";
import { logger } from "#server/log.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";

const cluster = testCluster();
const machine = clusterAt();
const NAMESPACE = "gpu-node-test";
const settings = smallSettings(cluster, "gpu-node", {
  gpuServers: { namespace: NAMESPACE, account: "sluice-gpud", daemonSet: "sluice-gpud", cordonAfterSeconds: 0 },
  moveSeconds: 15,
});
const POLL = { timeout: 120_000, interval: 200 };

let folder: string;
let second: Cluster;
let database: TestDatabase;
let world: World;
let broker: Broker;
let watch: ReturnType<typeof startClusterWatch>;
let live: ReturnType<typeof createLive>;
let environment: BuiltEnvironment;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-gpu-node-"));
  const adding = makeNode();
  // Awaited below.
  adding.catch(() => undefined);
  database = await useTestDatabase({ max: 10 });
  world = await makeWorld(database.db);
  // The servers of that world are rows without machines.
  await database.db.delete(gpus);
  await database.db.delete(gpuServers);
  const told = path.join(folder, "settings.json");
  await writeFile(told, JSON.stringify(settings));
  process.env.SLUICE_KUBERNETES_SETTINGS = told;
  resetEnv();
  await makeCertificates(folder, [cluster.address]);
  const file = async (name: string) => await readFile(path.join(folder, name), "utf8");
  const tls = { key: await file("server.key"), cert: await file("server.crt") };
  broker = await startBroker({ database, env: env(), log: logger("broker"), port: 0, host: cluster.address, tls });
  live = createLive(database.sql);
  watch = startClusterWatch({ database, live, log: logger("test"), settings });
  const stateDir = path.resolve(".sluice/cluster");
  const wheel = await builtWheel(stateDir);
  environment = await ensureEnvironment("cuda-python", { stateDir, wheel, onLine: () => undefined });
  second = await adding;
  await installGpud();
}, 400_000);
async function makeNode(): Promise<Cluster> {
  const node = await addNode(machine, 4, "gpu-node");
  await loadInto(node, cluster.imageFiles, [PAUSE_IMAGE, cluster.gpudImage]);
  return node;
}
afterAll(async () => {
  await watch?.stop();
  await live?.close();
  await kubectl(machine, "delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false");
  if (second !== undefined) await removeNode(second);
  await broker?.stop();
  await database?.drop();
  await rm(folder, { recursive: true, force: true });
}, 400_000);

/** The chart's gpud on the second node, by itself. */
async function installGpud(): Promise<void> {
  await makeNamespace(machine, NAMESPACE);
  const authority = path.join(folder, "ca.crt");
  await kubectl(
    machine,
    "create",
    "configmap",
    "sluice-settings",
    "--namespace",
    NAMESPACE,
    `--from-file=${authority}`,
  );
  const at = cluster.gpudImage.lastIndexOf(":");
  const values = {
    images: {
      gpud: { repository: cluster.gpudImage.slice(0, at), tag: cluster.gpudImage.slice(at + 1), pullPolicy: "Never" },
    },
    broker: { url: brokerUrl() },
    // What the chart asks for and nothing here looks at.
    portal: { url: "https://sluice.example.com" },
    gateway: { url: "https://notebooks.example.com", host: "notebooks.example.com" },
    database: { existingSecret: "sluice-database" },
    gpud: {
      backend: "soft",
      // The chart's own tests have it on the pods' network.
      hostNetwork: true,
      // By what a node says of itself: what an admin has labelled is gone with a deleted node.
      nodeSelector: { "sluice.dev/gpu-host": null, "kubernetes.io/hostname": second.node },
      tolerations: [{ key: POOL, operator: "Exists" }],
      stateDirectory: path.join(folder, "gpud"),
      args: ["--soft-memory", "1G"],
    },
  };
  await writeFile(path.join(folder, "values.json"), JSON.stringify(values));
  const chart = ["template", "sluice", path.resolve("deploy/helm/sluice"), "--show-only", "templates/gpud.yaml"];
  const words = ["--kube-version", kubernetesVersion(), "--values", path.join(folder, "values.json")];
  const home = { HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
  const made = await promisify(execFile)(cluster.helm, [...chart, ...words], { env: { ...process.env, ...home } });
  const file = path.join(folder, "gpud.yaml");
  await writeFile(file, made.stdout);
  await kubectl(machine, "apply", "--namespace", NAMESPACE, "--filename", file);
}
const brokerUrl = () => `https://${cluster.address}:${broker.port}`;

const COMPUTE = `import ctypes, time
driver = ctypes.CDLL("libcuda.so.1")
device, context, address, number = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint8(7)
assert driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and driver.cuCtxSetCurrent(context) == 0
assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1)) == 0
assert driver.cuMemcpyHtoD_v2(address, ctypes.byref(number), ctypes.c_size_t(1)) == 0
print("computes", flush=True)
while (failure := driver.cuMemcpyDtoH_v2(ctypes.byref(number), address, ctypes.c_size_t(1))) == 0:
    time.sleep(0.1)
print("failed with", failure, flush=True)`;

/** The same as a notebook has it, which borrows a GPU again; told to by a file, it gives the first one back itself. */
const borrowTwice = (file: string) => `%load_ext sluice_gpu
import os, time
from numba import cuda
import numpy as np
%gpu attach 0.5
held = cuda.to_device(np.arange(1000))
print("computes", flush=True)
failure = None
while failure is None and not os.path.exists("${file}"):
    time.sleep(0.1)
    try:
        held.copy_to_host()
    except Exception as error:
        failure = error
        print("failed", flush=True)
if failure is None:
    %gpu detach
%gpu attach 0.5
again = cuda.to_device(np.arange(1000))
print("again", int(again.copy_to_host().sum()), flush=True)
%gpu detach
`;

/** A program of a workspace that computes on half a GPU until that fails; gives what it has printed so far. */
const compute = async () =>
  await program("sluice", "run", "--gpu", "0.5", "--wait", "5m", "--", "python", "-c", COMPUTE);

/** A notebook's cells; `giveBack` has it give its GPU back, as far as it still has one. */
async function notebook() {
  const own = await mkdtemp(path.join(folder, "notebook-"));
  const [cells, file] = [path.join(own, "cells.ipy"), path.join(own, "give-back")];
  await writeFile(cells, borrowTwice(file));
  const printed = await program("ipython", "--colors=NoColor", cells);
  return { printed, giveBack: async () => await writeFile(file, "") };
}

/** Runs this program of the environment in a workspace of its own; gives what it has printed so far. */
async function program(name: string, ...words: string[]): Promise<() => string> {
  const own = await mkdtemp(path.join(folder, "workspace-"));
  const { credential } = await makeWorkspace(world, { owner: world.member });
  await writeFile(path.join(own, "credential"), credential, { mode: 0o600 });
  const bin = path.join(environment.path, "bin");
  const child = spawn(path.join(bin, name), words, {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      PATH: `${bin}:${process.env.PATH}`,
      SLUICE_BROKER_URL: brokerUrl(),
      SLUICE_CREDENTIAL_FILE: path.join(own, "credential"),
      SLUICE_RUNTIME_DIR: own,
      SSL_CERT_FILE: path.join(folder, "ca.crt"),
    },
  });
  onTestFinished(() => void child.kill());
  let printed = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
  return () => printed;
}

const servers = async () => (await database.db.select().from(gpuServers)).map((one) => `${one.name} ${one.state}`);
const lease = async () => {
  const [last] = await database.db.select().from(leases).orderBy(desc(leases.grantedAt)).limit(1);
  return last;
};

/** In which pod the server is by its row, and which gpuds there are. */
const placed = async () => (await database.db.select().from(gpuServers)).map(({ podUid }) => podUid);
const pods = async () => {
  const { items } = await cluster.objects.list<V1Pod>("v1", "Pod", NAMESPACE);
  return items.map(({ metadata }) => metadata?.uid);
};

it("lends what the node has", async () => {
  await expect.poll(servers, POLL).toEqual([`${second.node} online`]);
  expect(await placed()).toEqual(await pods());
  const [server] = await database.db.select().from(gpuServers);
  const { status } = await cluster.objects.read<V1Node>({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: second.node },
  });
  const node = status?.addresses?.find(({ type }) => type === "InternalIP")?.address;
  expect(server?.dataAddress, "on the node's network").toBe(`tls://${node}:3010`);
  const printed = await compute();
  await expect.poll(printed, POLL).toContain("computes");
});

it("empties when its node is cordoned: who gives back or loses a GPU then waits for another, and is not bound to it", async () => {
  const [gives, loses] = [await notebook(), await notebook()];
  for (const { printed } of [gives, loses]) await expect.poll(printed, POLL).toContain("computes");
  const held = (await database.db.select().from(leases)).flatMap(({ id, state }) => (state === "active" ? [id] : []));
  expect(held).toHaveLength(2);
  await kubectl(machine, "cordon", second.node);
  const rows = async () => (await database.db.select().from(leases)).filter(({ id }) => held.includes(id));
  const told = async () => (await rows()).every(({ releaseAt }) => releaseAt !== null);
  await expect.poll(told, POLL).toBe(true);
  await gives.giveBack();
  await expect.poll(gives.printed, POLL).toMatch(/Gave back 0\.5 GPU .* in its memory could not be kept/);
  await expect.poll(loses.printed, POLL).toContain("failed");
  const queued = eq(leaseRequests.state, "queued");
  await expect.poll(async () => await database.db.$count(leaseRequests, queued), POLL).toBe(2);
  expect((await rows()).map(({ state, endMode }) => [state, endMode])).toEqual([
    ["ended", "kill"],
    ["ended", "kill"],
  ]);
  await kubectl(machine, "uncordon", second.node);
  for (const { printed } of [gives, loses]) await expect.poll(printed, POLL).toContain("again 499500");
  // Their team's share is theirs until they have given back, and the next test asks for it.
  const going = ne(leases.state, "ended");
  await expect.poll(async () => await database.db.$count(leases, going), POLL).toBe(0);
}, 400_000);

it("takes nothing new when the node is deleted, ends what computes there with its gpud and says why, and grants when the node is back", async () => {
  const printed = await compute();
  await expect.poll(printed, POLL).toContain("computes");
  const held = await lease();
  const before = await pods();
  await kubectl(machine, "delete", "node", second.node);
  await expect.poll(servers, POLL).toEqual([`${second.node} draining`]);
  const waits = await compute();
  await expect.poll(waits, POLL).toContain(`on ${second.node} is being drained and takes no new leases`);
  // The cluster has nobody left to run that pod for, and its node ends it.
  await expect.poll(servers, { ...POLL, timeout: 120_000 }).toEqual([`${second.node} lost`]);
  await expect
    .poll(lease, { ...POLL, timeout: 120_000 })
    .toMatchObject({ id: held?.id, state: "ended", endReason: "server lost" });
  await expect.poll(printed, POLL).toContain("failed with");
  expect(waits()).not.toContain("computes");

  // A kubelet joins its node when it starts.
  await halt(second, "kubelet");
  await resume(second, "kubelet");
  await expect.poll(servers, { ...POLL, timeout: 120_000 }).toEqual([`${second.node} online`]);
  await expect.poll(waits, POLL).toContain("computes");
  // The same server, in the pod of now: by its own word, which it proves with its key.
  expect(await placed()).toEqual(await pods());
  expect(await pods()).not.toEqual(before);
}, 420_000);
