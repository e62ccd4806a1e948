/** What people are told when no node has room for a workspace. The sentences count nodes, and one test fills the node. */
import type { V1Node, V1Pod } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { useTestDatabase } from "#server/db/testing.ts";
import { stop } from "#server/services/workspace/stop.ts";
import { namespaceOf, podName } from "./objects.ts";
import { type Installation, SMALL, smallSettings, startInstallation, testCluster } from "./testing.ts";

const cluster = testCluster();
const settings = smallSettings(cluster, "room", {
  environments: {
    "cuda-python": { image: cluster.workspaceImage, size: "small", pull: "Never" },
    "no-room": { image: cluster.workspaceImage, size: "wide", pull: "Never" },
    "one-core": { image: cluster.workspaceImage, size: "core", pull: "Never" },
  },
  sizes: {
    small: SMALL,
    wide: { ...SMALL, cpu: { request: "500", limit: "500" } },
    core: { ...SMALL, cpu: { request: "1", limit: "2" } },
  },
  startSeconds: 60,
});

let installation: Installation;
beforeAll(async () => {
  const database = await useTestDatabase({ max: 10 });
  // No size is offered: a pod has what the settings give its environment.
  await database.sql`delete from workspace_sizes`;
  installation = await startInstallation(database, cluster, { settings, homes: 2 });
});
afterAll(async () => await installation?.stop());

it("names what no node has, and how much of it is missing, while it waits", async () => {
  const id = await installation.launch("no room", "no-room");
  const sentence =
    /No node has room for this workspace: too little CPU \(it asks for 500, and the largest node has ([\d.]+), so ([\d.]+) are missing\) on 1 of 1 node\. It cannot start like this/;
  await expect.poll(() => installation.told(id), { timeout: 120_000, interval: 100 }).toMatch(sentence);
  const [, most, missing] = sentence.exec(await installation.told(id)) ?? [];
  expect(Number(most) + Number(missing)).toBeCloseTo(500);
  await stop(installation.world.member.ctx, { id });
  await installation.observed(id, "stopped");
});

/** The pods that hold something on the node. */
async function podsThere(): Promise<V1Pod[]> {
  const { items } = await cluster.objects.list<V1Pod>("v1", "Pod");
  return items.filter(
    ({ spec, status }) => spec?.nodeName === "node-1" && !["Succeeded", "Failed"].includes(status?.phase ?? ""),
  );
}

/** Thousandths of a processor that the node has and nobody has asked for, once what earlier files made has ended. */
async function freeMilli(): Promise<number> {
  const ending = async () => (await podsThere()).filter(({ metadata }) => metadata?.deletionTimestamp !== undefined);
  await expect.poll(ending, { timeout: 120_000, interval: 500 }).toEqual([]);
  const milli = (cpu = "0") => (cpu.endsWith("m") ? Number(cpu.slice(0, -1)) : Number(cpu) * 1000);
  const node = await cluster.objects.read<V1Node>({ apiVersion: "v1", kind: "Node", metadata: { name: "node-1" } });
  const asked = (await podsThere())
    .flatMap(({ spec }) => spec?.containers ?? [])
    .map(({ resources }) => resources?.requests?.cpu);
  return asked.reduce((left, cpu) => left - milli(cpu), milli(node.status?.allocatable?.cpu));
}

it("says how much is missing on a node that is large enough and full, and starts when there is room", async () => {
  const fills = {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name: "fills", namespace: "default" } },
    spec: {
      ...{ automountServiceAccountToken: false, terminationGracePeriodSeconds: 0 },
      containers: [
        {
          ...{ name: "fills", image: "localhost/pause:1", imagePullPolicy: "Never" },
          resources: { requests: { cpu: `${(await freeMilli()) - 400}m` } },
        },
      ],
    },
  };
  await cluster.objects.create(fills);
  const giveBack = async () => await cluster.objects.delete(fills, undefined, undefined, 0).catch(() => undefined);
  onTestFinished(async () => void (await giveBack()));
  await expect
    .poll(async () => (await cluster.objects.read<V1Pod>(fills)).spec?.nodeName, { timeout: 120_000, interval: 200 })
    .toBe("node-1");
  const id = await installation.launch("full", "one-core");
  await expect
    .poll(() => installation.told(id), { timeout: 120_000, interval: 200 })
    .toContain(
      "No node has room for this workspace: too little CPU (it asks for 1) on 1 of 1 node. The node with the most left for it has 0.4 CPU free, so 0.6 CPU are missing. It starts when there is room",
    );
  // A broker that takes over meanwhile waits on, as long as a start may take, for the pod that is there.
  const { teamId, generation } = await installation.row(id);
  const metadata = { name: podName({ id, generation }), namespace: namespaceOf(settings, teamId) };
  const pod = async () => await cluster.objects.read<V1Pod>({ apiVersion: "v1", kind: "Pod", metadata });
  const before = await pod();
  await installation.restartReconciler();
  expect(await installation.launcher().observe(id)).toMatchObject({ state: "running", waits: true });
  await expect
    .poll(() => installation.told(id), { timeout: 120_000, interval: 200 })
    .toContain("Waiting for the pod that was made");
  expect((await installation.row(id)).observed).toBe("starting");
  await giveBack();
  await installation.observed(id, "running$");
  expect((await pod()).metadata?.uid).toBe(before.metadata?.uid);
  expect(await installation.launcher().observe(id)).not.toHaveProperty("waits");
  await stop(installation.world.member.ctx, { id });
  await installation.observed(id, "stopped");
}, 400_000);
