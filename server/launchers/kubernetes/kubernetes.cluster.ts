/** Workspaces as pods of a real Kubernetes: broker, reconciler, gateway and gpud are the real ones. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type KubernetesObject,
  PatchStrategy,
  type V1NetworkPolicy,
  type V1Pod,
  type V1Service,
} from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { useTestDatabase } from "#server/db/testing.ts";
import { usageWithin } from "#server/jupyter/usage.ts";
import { EXAMPLES } from "#server/launchers/local/examples.ts";
import { register } from "#server/services/dataset/register.ts";
import type { World } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { deleteFiles } from "#server/services/workspace/delete-files.ts";
import { follow } from "#server/services/workspace/follow.ts";
import { remove } from "#server/services/workspace/remove.ts";
import { restore } from "#server/services/workspace/restore.ts";
import { start } from "#server/services/workspace/start.ts";
import { stop } from "#server/services/workspace/stop.ts";
import { namespaceOf, podName, TEAM_LABEL, WORKSPACE_LABEL } from "./objects.ts";
import { type Installation, SMALL, smallSettings, startInstallation, testCluster } from "./testing.ts";

const cluster = testCluster();
const settings = smallSettings(cluster, "kubernetes", {
  environments: {
    "cuda-python": { image: cluster.workspaceImage, size: "small", pull: "Never" },
    "no-image": { image: "localhost/is-not-there:1", size: "small" },
    "too-large": { image: cluster.workspaceImage, size: "large", pull: "Never" },
    later: { image: cluster.workspaceImage, size: "later", pull: "Never" },
    "ends-at-once": { image: "localhost/pause:1", size: "small", pull: "Never" },
  },
  sizes: {
    small: SMALL,
    later: { ...SMALL, nodeSelector: { "test.sluice.dev/is-there": "later" } },
    large: { ...SMALL, memory: { request: "256Mi", limit: "64Gi" } },
  },
  team: { quota: { "limits.memory": "6Gi" } },
  startSeconds: 60,
});

let installation: Installation;
let world: World;
const launch = async (name: string, image?: string) => await installation.launch(name, image);
const row = async (id: string) => await installation.row(id);
const observed = async (id: string, wanted: string) => await installation.observed(id, wanted);
const told = async (id: string) => await installation.told(id);
const inNotebook = async (id: string, code: string) => await installation.inNotebook(id, code);
const throughGateway = async (id: string, wanted: string) => await installation.throughGateway(id, wanted);

beforeAll(async () => {
  const database = await useTestDatabase({ max: 10 });
  // No size is offered: a pod has what the settings give its environment.
  await database.sql`delete from workspace_sizes`;
  installation = await startInstallation(database, cluster, { settings, homes: 8 });
  ({ world } = installation);
});
afterAll(async () => await installation?.stop());

const left = async (id: string) =>
  (await installation.launcher().belongings()).filter(({ workspaceId }) => workspaceId === id).map(({ kind }) => kind);

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
  // What JupyterLab prints while it starts.
  expect(lines).toMatch(/\bServerApp\]/);
  expect(lines).toContain("The pod runs on node-1");
  expect(lines).toContain("A notebook kernel computed 6 * 7");
});

it("opens JupyterLab through the gateway", async () => {
  const lab = await throughGateway(first, "/lab");
  expect(lab.status).toBe(200);
  expect(lab.body).toContain("jupyter-config-data");
});

it("tells what its processes use, by its own server and not the cluster's API", async () => {
  const { endpoint, serverToken } = await row(first);
  const usage = await usageWithin({ endpoint: endpoint ?? "", token: serverToken ?? "" });
  expect(usage?.cpuMs).toBeGreaterThan(100);
  expect(usage?.memoryBytes).toBeGreaterThan(30 * 2 ** 20);
});

it("writes what its server prints among its lines as it comes, while somebody follows them", async () => {
  const strange = async () => await throughGateway(first, "/api/contents/is-not-there");
  await strange();
  await sleep(1_000);
  expect(await told(first)).not.toContain("is-not-there");
  await follow(world.member.ctx, { id: first });
  // What was printed before as well.
  await expect.poll(() => told(first), { timeout: 120_000 }).toContain("is-not-there");
  expect((await throughGateway(first, "/api/contents/nor-is-this")).status).toBe(404);
  await expect.poll(() => told(first), { timeout: 120_000 }).toContain("nor-is-this");
  const lines = (await told(first)).split("\n").filter((line) => /is-not-there|nor-is-this/.test(line));
  expect([...new Set(lines)]).toEqual(lines);
});

it("lends a GPU of a gpud outside to a notebook in a pod", async () => {
  expect(await inNotebook(first, KERNEL)).toContain("sum 500500");
});

it("runs the example that needs no package", async () => {
  const file = path.join(EXAMPLES, "driver-alone.ipynb");
  const { cells } = JSON.parse(await readFile(file, "utf8")) as { cells: { cell_type: string; source: string[] }[] };
  const code = cells.filter((cell) => cell.cell_type === "code").map(({ source }) => source.join(""));
  expect(await inNotebook(first, code.join("\n"))).toContain("303 primes below 2000");
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

it("mounts a dataset that is a volume of the team's namespace, for reading alone", async () => {
  const folder = path.join(cluster.folder, "volumes", "numbers");
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, "numbers.txt"), "1 2 3");
  const namespace = namespaceOf(settings, world.team);
  const spec = { accessModes: ["ReadOnlyMany"], storageClassName: "" };
  const made: (KubernetesObject & Record<string, unknown>)[] = [
    {
      ...{ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "numbers" } },
      spec: { ...spec, capacity: { storage: "1Gi" }, hostPath: { path: folder } },
    },
    {
      ...{ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "numbers", namespace } },
      spec: { ...spec, volumeName: "numbers", resources: { requests: { storage: "1Gi" } } },
    },
  ];
  for (const object of made) await cluster.objects.create(object);
  const source = { kind: "volume", claim: "numbers" } as const;
  const dataset = await register(world.lead.ctx, { name: "numbers", teamId: world.team, source, description: "" });
  const { id } = await create(world.member.ctx, { name: "reads", image: "cuda-python", datasets: [dataset.id] });
  installation.made.push(id);
  await observed(id, "running$");
  const printed = await inNotebook(
    id,
    `print(open("/home/user/datasets/numbers/numbers.txt").read())
try:
    open("/home/user/datasets/numbers/more.txt", "w")
except OSError as error:
    print(error.strerror)`,
  );
  expect(printed.split("\n")).toEqual(["1 2 3", "Read-only file system"]);
  await remove(world.member.ctx, { id });
  await deleteFiles(world.member.ctx, { id });
  await observed(id, "removed");
  for (const object of made.reverse()) await cluster.objects.delete(object);
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
  const uid = async () => {
    // Who looks meanwhile takes it for running all the same.
    expect((await installation.launcher().observe(first)).state).toBe("running");
    return (await cluster.objects.read<V1Service>(service).catch(() => before)).metadata?.uid;
  };
  await expect.poll(uid, { timeout: 120_000, interval: 100 }).not.toBe(before.metadata?.uid);
  expect((await row(first)).endpoint).toBe(endpoint);
  await expect.poll(opened, { timeout: 120_000, interval: 500 }).toBe(200);
});

/** What the first workspace answers. A connection that is begun before the node knows its address again waits in vain. */
async function opened(): Promise<number> {
  const late = sleep(2_000, { status: 0 });
  return (await Promise.race([throughGateway(first, "/lab"), late])).status;
}

it("puts a service and a policy again as they were when somebody changes them", async () => {
  const namespace = namespaceOf(settings, (await row(first)).teamId);
  const service = { apiVersion: "v1", kind: "Service", metadata: { name: first, namespace } };
  const policy = {
    ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" },
    metadata: { name: "sluice-workspaces", namespace },
  };
  const [selector, egress] = [
    async () => (await cluster.objects.read<V1Service>(service)).spec?.selector,
    async () => (await cluster.objects.read<V1NetworkPolicy>(policy)).spec?.egress,
  ];
  const before = [await selector(), await egress()];
  const change = async (object: KubernetesObject & { spec: object }) =>
    await cluster.objects.patch(object, undefined, undefined, "tester", undefined, PatchStrategy.MergePatch);
  await change({ ...service, spec: { selector: { "sluice.dev/workspace": "elsewhere" } } });
  await change({ ...policy, spec: { egress: [{}] } });
  expect([await egress()]).toEqual([[{}]]);
  await expect.poll(async () => [await selector(), await egress()], { timeout: 120_000 }).toEqual(before);
});

it("finds running pods after a restart of the broker's reconciler, and a service that was deleted meanwhile", async () => {
  const { endpoint, teamId } = await row(first);
  await installation.launcher().close();
  const metadata = { name: first, namespace: namespaceOf(settings, teamId) };
  await cluster.objects.delete({ apiVersion: "v1", kind: "Service", metadata });
  await installation.restartReconciler();
  await expect
    .poll(async () => (await installation.launcher().observe(first)).state, { timeout: 120_000 })
    .toBe("running");
  await observed(first, "running$");
  expect((await row(first)).generation).toBe(1);
  expect(await installation.launcher().endpoint(first)).toBe(endpoint);
  const made = await cluster.objects.read<V1Service>({ apiVersion: "v1", kind: "Service", metadata });
  expect(endpoint).toBe(`http://${made.spec?.clusterIP}:8888`);
  await expect.poll(opened, { timeout: 120_000, interval: 500 }).toBe(200);
});

it("believes no pod and no service outside of the team's namespace, whatever their labels say", async () => {
  const { endpoint, generation, teamId } = await row(first);
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { namespace: namespaceOf(settings, teamId) } };
  const real = await cluster.objects.read<V1Pod>({
    ...{ ...pod, metadata: { ...pod.metadata, name: podName({ id: first, generation }) } },
  });
  const metadata = {
    ...{ name: podName({ id: first, generation: 999 }), namespace: "default", labels: real.metadata?.labels ?? {} },
    annotations: { ...real.metadata?.annotations, "sluice.dev/generation": "999" },
  };
  const forged: (KubernetesObject & Record<string, unknown>)[] = [
    { apiVersion: "v1", kind: "Service", metadata: { ...metadata, name: first }, spec: { ports: [{ port: 8888 }] } },
    {
      ...{ apiVersion: "v1", kind: "Pod", metadata },
      spec: {
        ...{ automountServiceAccountToken: false, terminationGracePeriodSeconds: 0 },
        containers: [{ name: "workspace", image: "localhost/pause:1", imagePullPolicy: "Never" }],
      },
    },
  ];
  for (const object of forged) await cluster.objects.create(object);
  const launcher = installation.launcher();
  const phase = async () => (await cluster.objects.read<V1Pod>({ ...pod, metadata })).status?.phase;
  await expect.poll(phase, { timeout: 120_000, interval: 200 }).toBe("Running");
  expect(await launcher.observe(first)).toMatchObject({ state: "running", endpoint, handle: { generation } });
  expect((await launcher.logs(first, 200)).join("\n")).toContain("Jupyter Server");
  expect((await launcher.belongings()).filter(({ namespace }) => namespace === "default")).toEqual([]);
  // Nor does it keep a stop from ending, or its own end make the workspace one that was lost.
  await stop(world.member.ctx, { id: first });
  await observed(first, "stopped$");
  expect(await phase()).toBe("Running");
  for (const object of forged) await cluster.objects.delete(object);
  await expect.poll(() => phase().catch(() => "gone"), { timeout: 120_000, interval: 200 }).toBe("gone");
  expect(await launcher.observe(first)).toEqual({ state: "stopped" });
  await start(world.member.ctx, { id: first });
  await observed(first, "running$");
});

it("says so when somebody deletes the pod, and start brings the files back", async () => {
  await inNotebook(first, 'open("/home/user/kept.txt", "w").write("still here")');
  const { teamId, generation } = await row(first);
  await cluster.objects.delete({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: podName({ id: first, generation }), namespace: namespaceOf(settings, teamId) },
  });
  await observed(first, "failed: The pod of this workspace was deleted by somebody else than Sluice");
  await start(world.member.ctx, { id: first });
  await observed(first, "running$");
  expect(await inNotebook(first, 'print(open("/home/user/kept.txt").read())')).toBe("still here");
});

it("keeps the home over a stop and a removal, and deletes everything with the files", async () => {
  await stop(world.member.ctx, { id: first });
  await observed(first, "stopped");
  expect(await left(first)).toEqual(["PersistentVolumeClaim"]);
  // Its volume was made by hand: the cluster makes it no larger.
  await installation.restartReconciler({ ...settings, home: { ...settings.home, size: "2Gi" } });
  await start(world.member.ctx, { id: first });
  await observed(first, "running$");
  expect(await told(first)).toContain("The home folder stays at 1Gi: the cluster does not make it 2Gi (");
  await installation.restartReconciler();
  expect(await inNotebook(first, 'print(open("/home/user/kept.txt").read())')).toBe("still here");
  await remove(world.member.ctx, { id: first });
  await observed(first, "stopped");
  expect(await left(first)).toEqual(["PersistentVolumeClaim"]);
  await restore(world.member.ctx, { id: first });
  await start(world.member.ctx, { id: first });
  await observed(first, "running$");
  expect(await inNotebook(first, 'print(open("/home/user/kept.txt").read())')).toBe("still here");
  await remove(world.member.ctx, { id: first });
  await deleteFiles(world.member.ctx, { id: first });
  await observed(first, "removed");
  await expect.poll(() => left(first), { timeout: 120_000 }).toEqual([]);
});

it("names what is wrong when the image cannot be had, and waits while its registry is away", async () => {
  const id = await launch("no image", "no-image");
  await expect
    .poll(() => told(id), { timeout: 120_000, interval: 200 })
    .toMatch(/The registry of the image localhost\/is-not-there:1 cannot be reached: .*connection refused/);
  expect((await row(id)).observed).toBe("starting");
  await stop(world.member.ctx, { id });
  await observed(id, "stopped");
});

it("names the quota that is used up", async () => {
  const id = await launch("too large", "too-large");
  await observed(
    id,
    "failed: The workspace did not start. The team's quota on the cluster is used up: 64Gi of memory \\(limit\\) asked for, \\S+ of 6Gi in use",
  );
});

it("makes a pod anew that is deleted while the broker that took over waits for it", async () => {
  const id = await launch("begun", "later");
  await expect.poll(() => told(id), { timeout: 120_000, interval: 200 }).toContain("no node has the label");
  await installation.restartReconciler();
  await expect.poll(() => told(id), { timeout: 120_000, interval: 200 }).toContain("Waiting for the pod that was made");
  const { teamId, generation } = await row(id);
  const metadata = { name: podName({ id, generation }), namespace: namespaceOf(settings, teamId) };
  await cluster.objects.delete({ apiVersion: "v1", kind: "Pod", metadata }, undefined, undefined, 0);
  await expect
    .poll(() => told(id), { timeout: 120_000, interval: 200 })
    .toMatch(/before it ran\. It is made again\.[\s\S]*Making the pod/);
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
  const known = new Set(installation.made);
  const unknown = async () =>
    (await installation.launcher().belongings()).filter(({ workspaceId }) => !known.has(workspaceId));
  expect(await unknown()).toEqual([]);
  const namespace = namespaceOf(settings, world.team);
  const labels = {
    "app.kubernetes.io/managed-by": "sluice",
    [WORKSPACE_LABEL]: "ws-nobodys",
    [TEAM_LABEL]: world.team,
  };
  const strays: (KubernetesObject & Record<string, unknown>)[] = [
    { apiVersion: "v1", kind: "Secret", metadata: { name: "stray", namespace, labels } },
    {
      ...{ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "stray-volume", labels } },
      spec: {
        ...{ capacity: { storage: "1Mi" }, accessModes: ["ReadOnlyMany"], storageClassName: "" },
        persistentVolumeReclaimPolicy: "Retain",
        claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name: "stray-volume" },
        nfs: { server: "nas.example", path: "/export" },
      },
    },
  ];
  for (const stray of strays) await cluster.objects.create(stray);
  expect(await unknown()).toEqual([
    { kind: "Secret", namespace, name: "stray", workspaceId: "ws-nobodys" },
    { kind: "PersistentVolume", namespace, name: "stray-volume", workspaceId: "ws-nobodys" },
  ]);
  for (const stray of strays) await cluster.objects.delete(stray);
});
