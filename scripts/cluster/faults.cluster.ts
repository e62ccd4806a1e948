/** What happens to workspaces when parts of a real cluster fail, or are taken away for maintenance. */
import { setTimeout as sleep } from "node:timers/promises";
import { and, eq } from "drizzle-orm";
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from "vitest";
import { halt, kubectl, resume } from "#scripts/cluster/cluster.ts";
import { clusterAt } from "#scripts/cluster/place.ts";
import { notices } from "#server/db/schema/index.ts";
import { useTestDatabase } from "#server/db/testing.ts";
import {
  type Installation,
  smallSettings,
  startInstallation,
  testCluster,
} from "#server/launchers/kubernetes/testing.ts";
import { stop } from "#server/services/workspace/stop.ts";

const cluster = testCluster();
const machine = clusterAt();
const NODE = "node-1";
const settings = smallSettings(cluster, "faults", {
  // The cluster's own parts come back to their work only some time after the API server.
  startSeconds: 240,
  moveSeconds: 10,
  lostNodeSeconds: 15,
});
const POLL = { timeout: 60_000, interval: 200 };

let installation: Installation;
let first: string;
beforeAll(async () => {
  installation = await startInstallation(await useTestDatabase({ max: 10 }), cluster, { settings, homes: 3 });
});
afterAll(async () => await installation?.stop());

let away: string | undefined;
async function takeAway(part: string): Promise<void> {
  await halt(machine, part);
  away = part;
}
async function giveBack(): Promise<void> {
  if (away !== undefined) await resume(machine, away);
  away = undefined;
}
afterEach(async () => {
  await giveBack();
  await kubectl(machine, "uncordon", NODE);
});

const message = async () => (await installation.row(first)).message;
const generation = async () => (await installation.row(first)).generation;

const COMPUTE = `%gpu attach 0.5
import time
import numpy as np
from numba import cuda
@cuda.jit
def increase(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] += 1
d = cuda.to_device(np.zeros(1000))
rounds, end = 0, time.time() + 15
while time.time() < end:
    increase[8, 128](d)
    cuda.synchronize()
    rounds += 1
print("sum", int(d.copy_to_host().sum()) == rounds * 1000)
%gpu detach`;

it("launches", async () => {
  first = await installation.launch("first");
  await installation.observed(first, "running$");
});

it("goes on while the API server is away for 30 s: notebooks compute on their GPU, and a launch waits for it", async () => {
  await takeAway("kube-apiserver");
  const since = Date.now();
  const computing = installation.inNotebook(first, COMPUTE);
  const second = await installation.launch("second");
  await expect.poll(() => installation.told(second), POLL).toContain("The cluster does not answer");
  expect((await installation.throughGateway(first, "/lab")).status).toBe(200);
  expect(await computing).toContain("sum True");
  await sleep(30_000 - (Date.now() - since));
  expect((await installation.row(second)).observed).toBe("starting");
  await giveBack();
  await installation.observed(second, "running$", 200_000);
  await installation.observed(first, "running$");
  expect(await generation()).toBe(1);
  await stop(installation.world.member.ctx, { id: second });
  await installation.observed(second, "stopped");
}, 300_000);

it("leaves notebooks alone on a node whose kubelet is silent, however long, while they answer, and says so", async () => {
  await takeAway("kubelet");
  const goesOn = `The node ${NODE} no longer answers the cluster. The workspace still answers and goes on there`;
  await expect.poll(message, POLL).toContain(goesOn);
  expect((await installation.throughGateway(first, "/lab")).status).toBe(200);
  await sleep(2 * settings.lostNodeSeconds * 1000);
  expect(await message()).toContain(goesOn);
  expect((await installation.throughGateway(first, "/lab")).status).toBe(200);
  expect(await installation.inNotebook(first, "print(6 * 7)")).toBe("42");
  expect(await generation()).toBe(1);
  await giveBack();
  await expect.poll(message, POLL).toBeNull();
}, 240_000);

const announced = async () =>
  await installation.database.db
    .select({ title: notices.title })
    .from(notices)
    .where(and(eq(notices.kind, "workspace-move"), eq(notices.userId, installation.world.member.id)));

/** A node by its name alone, which could take a workspace by all that it says, and has no room left. */
async function makeOtherNode(): Promise<() => Promise<void>> {
  const amounts = { cpu: "4", memory: "4Gi", pods: "10" };
  const conditions = [{ type: "Ready", status: "True", reason: "Imitated", lastHeartbeatTime: new Date() }];
  const node = {
    ...{ apiVersion: "v1", kind: "Node", metadata: { name: "other", labels: { "kubernetes.io/os": "linux" } } },
    status: { allocatable: amounts, capacity: amounts, conditions },
  };
  const full = {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name: "fills-other", namespace: "default" } },
    spec: {
      nodeName: "other",
      tolerations: [{ operator: "Exists" }],
      containers: [{ name: "fills", image: "localhost/none:1", resources: { requests: { memory: "4Gi" } } }],
    },
  };
  await cluster.objects.create(node);
  await cluster.objects.create(full);
  return async () => {
    await cluster.objects.delete(full, undefined, undefined, 0);
    await cluster.objects.delete(node);
  };
}

it("tells people that their node is being emptied, moves nobody to nowhere, and takes it back when it is not", async () => {
  const before = await generation();
  await kubectl(machine, "cordon", NODE);
  await expect.poll(message, POLL).toContain("no other node can take this workspace");
  expect(await announced()).toEqual([]);
  onTestFinished(await makeOtherNode());
  await expect.poll(message, POLL).toContain("The workspace is started again on another node");
  expect(await announced()).toEqual([{ title: "first will be started again on another machine" }]);
  await kubectl(machine, "uncordon", NODE);
  await expect.poll(message, POLL).toBeNull();
  expect(await announced()).toEqual([]);
  expect(await generation()).toBe(before);
});

it("lets nobody evict a workspace before its notice is over, and starts it where there is room then", async () => {
  const before = await generation();
  await installation.inNotebook(first, 'open("/home/user/kept.txt", "w").write("still here")');
  onTestFinished(await makeOtherNode());
  const drain = kubectl(
    machine,
    "drain",
    "--force",
    NODE,
    "--pod-selector=sluice.dev/workspace",
    "--delete-emptydir-data",
    "--timeout=60s",
  );
  await expect.poll(message, POLL).toContain("The workspace is started again on another node");
  expect(await installation.inNotebook(first, "print(6 * 7)")).toBe("42");
  await expect.poll(generation, POLL).toBe(before + 1);
  expect(await drain).toContain("drained");
  await expect
    .poll(() => installation.told(first), POLL)
    .toContain("No node has room for this workspace: too little memory");
  await kubectl(machine, "uncordon", NODE);
  await installation.observed(first, "running$");
  expect(await installation.inNotebook(first, 'print(open("/home/user/kept.txt").read())')).toBe("still here");
}, 180_000);
