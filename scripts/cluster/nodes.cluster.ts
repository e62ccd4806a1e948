/**
 * Two nodes that are really there, and this file's own: what is emptied moves to the other, and what was on a dead one
 * comes back there.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { V1Pod } from "@kubernetes/client-node";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { addNode, ctr, failNode, halt, kubectl, removeNode, resume, returnNode } from "#scripts/cluster/cluster.ts";
import { loadInto } from "#scripts/cluster/images.ts";
import { type Cluster, clusterAt, POOL } from "#scripts/cluster/place.ts";
import { PAUSE_IMAGE } from "#scripts/cluster/settings.ts";
import { notices } from "#server/db/schema/index.ts";
import { useTestDatabase } from "#server/db/testing.ts";
import { namespaceOf, podName, WORKSPACE_LABEL } from "#server/launchers/kubernetes/objects.ts";
import {
  type Installation,
  makeVolumes,
  SMALL,
  smallSettings,
  startInstallation,
  testCluster,
} from "#server/launchers/kubernetes/testing.ts";

const cluster = testCluster();
const machine = clusterAt();
/** The pool of this file's nodes; the workspaces run nowhere else. */
const OWN = "nodes";
const settings = smallSettings(cluster, "nodes", {
  sizes: {
    small: {
      ...SMALL,
      nodeSelector: { [POOL]: OWN },
      tolerations: [{ key: POOL, value: OWN, effect: "NoSchedule" }],
    },
  },
  moveSeconds: 5,
  lostNodeSeconds: 15,
});
/** Of volumes that only the second node can use. */
const BOUND_CLASS = "bound-homes";
const POLL = { timeout: 120_000, interval: 200 };

let near: Cluster;
let second: Cluster;
let installation: Installation;
let dropBound: () => Promise<void>;
let first: string;
let bound: string;
async function makeNode(number: number): Promise<Cluster> {
  const node = await addNode(machine, number, OWN);
  await loadInto(node, cluster.imageFiles, [PAUSE_IMAGE, cluster.workspaceImage]);
  return node;
}
beforeAll(async () => {
  const starting = useTestDatabase({ max: 10 }).then(async (database) => {
    installation = await startInstallation(database, cluster, { settings, homes: 1 });
  });
  const addNear = async () => {
    near = await makeNode(2);
  };
  const addSecond = async () => {
    second = await makeNode(3);
  };
  await Promise.all([starting, addNear(), addSecond()]);
  dropBound = await makeVolumes(cluster, 1, { storageClass: BOUND_CLASS, node: second.node });
}, 400_000);
afterAll(async () => {
  await installation?.stop();
  await dropBound?.();
  for (const node of [near, second]) if (node !== undefined) await removeNode(node);
}, 400_000);

const message = async (id = first) => (await installation.row(id)).message;

/** The node of its pod. */
async function nodeOf(id: string): Promise<string | undefined> {
  const { teamId, generation } = await installation.row(id);
  const metadata = { name: podName({ id, generation }), namespace: namespaceOf(settings, teamId) };
  const pod = { apiVersion: "v1", kind: "Pod", metadata };
  return (await cluster.objects.read<V1Pod>(pod)).spec?.nodeName;
}
const KEEP = 'open("/home/user/kept.txt", "w").write("still here")';
const kept = async (id = first) => await installation.inNotebook(id, 'print(open("/home/user/kept.txt").read())');

const BORROW = `%gpu attach 0.5
import numpy as np
from numba import cuda
print("sum", int(cuda.to_device(np.arange(1000)).copy_to_host().sum()))
%gpu detach`;

it("moves a workspace off a node that is drained, after its notice, with its files and its way to a GPU", async () => {
  await kubectl(machine, "cordon", second.node);
  first = await installation.launch("first");
  await installation.observed(first, "running$");
  expect(await nodeOf(first)).toBe(near.node);
  await installation.inNotebook(first, KEEP);
  await kubectl(machine, "uncordon", second.node);
  const only = ["--pod-selector=sluice.dev/workspace", "--delete-emptydir-data", "--timeout=60s"];
  const drained = kubectl(machine, "drain", "--force", near.node, ...only);
  await expect.poll(() => message(), POLL).toContain("The workspace is started again on another node");
  expect(await drained).toContain("drained");
  await installation.observed(first, "running$");
  expect(await nodeOf(first)).toBe(second.node);
  expect(await kept()).toBe("still here");
  expect(await installation.inNotebook(first, BORROW)).toContain("sum 499500");
  expect((await installation.throughGateway(first, "/lab")).status).toBe(200);
  await kubectl(machine, "uncordon", near.node);
}, 400_000);

/** The workspace's pods, by their names. */
async function podsOf(id: string): Promise<string[]> {
  const { teamId } = await installation.row(id);
  const { items } = await cluster.objects.list<V1Pod>("v1", "Pod", namespaceOf(settings, teamId));
  const its = items.filter(({ metadata }) => metadata?.labels?.[WORKSPACE_LABEL] === id);
  return its.map(({ metadata }) => metadata?.name ?? "");
}

it("leaves a workspace where it is, however long its node's kubelet is silent, while it answers", async () => {
  const { generation } = await installation.row(first);
  await halt(second, "kubelet");
  const silent = `The node ${second.node} no longer answers the cluster. The workspace still answers and goes on there`;
  await expect.poll(() => message(), POLL).toContain(silent);
  await sleep(2 * settings.lostNodeSeconds * 1000);
  expect(await message()).toContain(silent);
  expect((await installation.throughGateway(first, "/lab")).status).toBe(200);
  expect((await installation.row(first)).generation).toBe(generation);
  await resume(second, "kubelet");
  await expect.poll(() => message(), POLL).toBeNull();
}, 400_000);

it("brings a workspace back on another node whose node's power failed, or says that its home cannot leave it", async () => {
  await installation.restartReconciler({ ...settings, home: { size: "1Gi", storageClass: BOUND_CLASS } });
  bound = await installation.launch("bound");
  await installation.observed(bound, "running$");
  expect(await nodeOf(bound)).toBe(second.node);
  await installation.inNotebook(bound, KEEP);
  const { generation } = await installation.row(first);

  await failNode(second);
  const silent = `The node ${second.node} no longer answers the cluster, and the workspace answers nobody`;
  await expect.poll(() => message(), POLL).toContain(`${silent}. If that is so until`);
  await expect
    .poll(() => message(bound), POLL)
    .toContain(`${silent}; its volume for the home folder can be used on no`);
  await expect.poll(async () => (await installation.row(first)).generation, POLL).toBe(generation + 1);
  await installation.observed(first, "running$");
  expect(await nodeOf(first)).toBe(near.node);
  expect(await podsOf(first)).toEqual([podName({ id: first, generation: generation + 1 })]);
  expect(await kept()).toBe("still here");
  const told = await installation.database.db.select().from(notices).where(eq(notices.kind, "workspace-restarted"));
  expect(told.map(({ title }) => title)).toEqual(["first ended with its machine and was started again"]);
  // It waits where it is.
  expect(await installation.row(bound)).toMatchObject({ observed: "running", generation: 1 });
}, 400_000);

it("leaves it alone there when the dead node is back, which starts what could not leave it", async () => {
  await returnNode(second);
  await expect.poll(() => message(bound), POLL).toBeNull();
  const opened = async () => (await installation.throughGateway(bound, "/lab")).status;
  await expect.poll(opened, POLL).toBe(200);
  expect(await kept(bound)).toBe("still here");
  const [pod] = await podsOf(first);
  // Long enough for a node to start what it was told to run before.
  await sleep(10_000);
  expect(await podsOf(first)).toEqual([pod]);
  expect(await nodeOf(first)).toBe(near.node);
  // The container of what could not leave it, and what holds that pod's namespaces.
  const run = (await ctr(second, "task", "ls")).split("\n").filter((line) => line.includes("RUNNING"));
  expect(run).toHaveLength(2);
  expect(await kept()).toBe("still here");
}, 400_000);
