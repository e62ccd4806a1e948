/** Two nodes that are really there: what is emptied moves to the other, and of what was on a dead one people are told. */
import type { V1Pod } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { addNode, copyImages, failNode, kubectl, removeNode } from "#scripts/cluster/cluster.ts";
import { type Cluster, clusterAt } from "#scripts/cluster/place.ts";
import { PAUSE_IMAGE } from "#scripts/cluster/settings.ts";
import { useTestDatabase } from "#server/db/testing.ts";
import { namespaceOf, podName } from "#server/launchers/kubernetes/objects.ts";
import {
  type Installation,
  smallSettings,
  startInstallation,
  testCluster,
} from "#server/launchers/kubernetes/testing.ts";

const cluster = testCluster();
const machine = clusterAt();
const settings = smallSettings(cluster, "nodes", { moveSeconds: 5, lostNodeSeconds: 5 });
const POLL = { timeout: 60_000, interval: 200 };

let second: Cluster;
let installation: Installation;
let first: string;
beforeAll(async () => {
  second = await addNode(machine);
  await copyImages(machine, second, [PAUSE_IMAGE, cluster.workspaceImage]);
  installation = await startInstallation(await useTestDatabase({ max: 10 }), cluster, { settings, homes: 1 });
}, 180_000);
afterAll(async () => {
  await installation?.stop();
  await removeNode(machine);
  await kubectl(machine, "uncordon", machine.node);
}, 180_000);

const message = async () => (await installation.row(first)).message;

/** The node of its pod. */
async function nodeOf(id: string): Promise<string | undefined> {
  const { teamId, generation } = await installation.row(id);
  const metadata = { name: podName({ id, generation }), namespace: namespaceOf(settings, teamId) };
  const pod = { apiVersion: "v1", kind: "Pod", metadata };
  return (await cluster.objects.read<V1Pod>(pod)).spec?.nodeName;
}
const kept = async () => await installation.inNotebook(first, 'print(open("/home/user/kept.txt").read())');

const BORROW = `%gpu attach 0.5
import numpy as np
from numba import cuda
print("sum", int(cuda.to_device(np.arange(1000)).copy_to_host().sum()))
%gpu detach`;

it("moves a workspace off a node that is drained, after its notice, with its files and its way to a GPU", async () => {
  await kubectl(machine, "cordon", second.node);
  first = await installation.launch("first");
  await installation.observed(first, "running$");
  expect(await nodeOf(first)).toBe(machine.node);
  await installation.inNotebook(first, 'open("/home/user/kept.txt", "w").write("still here")');
  await kubectl(machine, "uncordon", second.node);
  const only = ["--pod-selector=sluice.dev/workspace", "--delete-emptydir-data", "--timeout=60s"];
  const drained = kubectl(machine, "drain", "--force", machine.node, ...only);
  await expect.poll(message, POLL).toContain("The workspace is started again on another node");
  expect(await drained).toContain("drained");
  await installation.observed(first, "running$");
  expect(await nodeOf(first)).toBe(second.node);
  expect(await kept()).toBe("still here");
  expect(await installation.inNotebook(first, BORROW)).toContain("sum 499500");
  expect((await installation.throughGateway(first, "/lab")).status).toBe(200);
  await kubectl(machine, "uncordon", machine.node);
}, 240_000);

it("says that a node no longer answers whose power failed, and that its workspace has ended", async () => {
  await failNode(second);
  await expect.poll(message, POLL).toContain(`The node ${second.node} no longer answers the cluster`);
  const sentence = `The node ${second.node} no longer answers. Start brings the workspace back on another node`;
  await installation.observed(first, `failed: ${sentence}`);
}, 180_000);
