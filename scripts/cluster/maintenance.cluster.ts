/** What happens to workspaces on a node whose kubelet is silent, or that is emptied for maintenance. The file has a node of its own. */
import { setTimeout as sleep } from "node:timers/promises";
import { and, eq } from "drizzle-orm";
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from "vitest";
import { addNode, halt, kubectl, removeNode, resume } from "#scripts/cluster/cluster.ts";
import { loadInto } from "#scripts/cluster/images.ts";
import { type Cluster, clusterAt, POOL } from "#scripts/cluster/place.ts";
import { PAUSE_IMAGE } from "#scripts/cluster/settings.ts";
import { notices } from "#server/db/schema/index.ts";
import { useTestDatabase } from "#server/db/testing.ts";
import {
  type Installation,
  SMALL,
  smallSettings,
  startInstallation,
  testCluster,
} from "#server/launchers/kubernetes/testing.ts";

const cluster = testCluster();
const machine = clusterAt();
/** The pool of this file's node; the workspaces run nowhere else. */
const OWN = "maintenance";
/** An imitated node. */
const OTHER = "maintenance-other";
const settings = smallSettings(cluster, "maintenance", {
  sizes: {
    small: {
      ...SMALL,
      nodeSelector: { [POOL]: OWN },
      tolerations: [{ key: POOL, value: OWN, effect: "NoSchedule" }],
    },
  },
  moveSeconds: 10,
  lostNodeSeconds: 15,
});
const POLL = { timeout: 120_000, interval: 200 };

let node: Cluster;
let installation: Installation;
let first: string;
async function makeNode(): Promise<void> {
  node = await addNode(machine, 5, OWN);
  await loadInto(node, cluster.imageFiles, [PAUSE_IMAGE, cluster.workspaceImage]);
}
beforeAll(async () => {
  const starting = useTestDatabase({ max: 10 }).then(async (database) => {
    installation = await startInstallation(database, cluster, { settings, homes: 1 });
  });
  await Promise.all([starting, makeNode()]);
}, 400_000);
afterAll(async () => {
  await installation?.stop();
  if (node !== undefined) await removeNode(node);
}, 400_000);

let isSilent = false;
async function giveBack(): Promise<void> {
  if (isSilent) await resume(node, "kubelet");
  isSilent = false;
}
afterEach(async () => {
  await giveBack();
  await kubectl(machine, "uncordon", node.node);
});

const message = async () => (await installation.row(first)).message;
const generation = async () => (await installation.row(first)).generation;

it("launches on the node", async () => {
  first = await installation.launch("first");
  await installation.observed(first, "running$");
  expect(await installation.told(first)).toContain(`The pod runs on ${node.node}`);
});

it("leaves notebooks alone on a node whose kubelet is silent, however long, while they answer, and says so", async () => {
  await halt(node, "kubelet");
  isSilent = true;
  const goesOn = `The node ${node.node} no longer answers the cluster. The workspace still answers and goes on there`;
  await expect.poll(message, POLL).toContain(goesOn);
  expect((await installation.throughGateway(first, "/lab")).status).toBe(200);
  await sleep(2 * settings.lostNodeSeconds * 1000);
  expect(await message()).toContain(goesOn);
  expect((await installation.throughGateway(first, "/lab")).status).toBe(200);
  expect(await installation.inNotebook(first, "print(6 * 7)")).toBe("42");
  expect(await generation()).toBe(1);
  await giveBack();
  await expect.poll(message, POLL).toBeNull();
}, 400_000);

const announced = async () =>
  await installation.database.db
    .select({ title: notices.title })
    .from(notices)
    .where(and(eq(notices.kind, "workspace-move"), eq(notices.userId, installation.world.member.id)));

/** A node by its name alone, which could take a workspace by all that it says, and has no room left. */
async function makeOtherNode(): Promise<() => Promise<void>> {
  const amounts = { cpu: "4", memory: "4Gi", pods: "10" };
  const conditions = [{ type: "Ready", status: "True", reason: "Imitated", lastHeartbeatTime: new Date() }];
  const labels = { "kubernetes.io/os": "linux", [POOL]: OWN };
  const other = {
    ...{ apiVersion: "v1", kind: "Node", metadata: { name: OTHER, labels } },
    spec: { taints: [{ key: POOL, value: OWN, effect: "NoSchedule" }] },
    status: { allocatable: amounts, capacity: amounts, conditions },
  };
  const full = {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name: `fills-${OTHER}`, namespace: "default" } },
    spec: {
      nodeName: OTHER,
      tolerations: [{ operator: "Exists" }],
      containers: [{ name: "fills", image: "localhost/none:1", resources: { requests: { memory: "4Gi" } } }],
    },
  };
  await cluster.objects.create(other);
  await cluster.objects.create(full);
  return async () => {
    await cluster.objects.delete(full, undefined, undefined, 0);
    await cluster.objects.delete(other);
  };
}

it("tells people that their node is being emptied, moves nobody to nowhere, and takes it back when it is not", async () => {
  const before = await generation();
  await kubectl(machine, "cordon", node.node);
  await expect.poll(message, POLL).toContain("no other node can take this workspace");
  expect(await announced()).toEqual([]);
  onTestFinished(await makeOtherNode());
  await expect.poll(message, POLL).toContain("The workspace is started again on another node");
  expect(await announced()).toEqual([{ title: "first will be started again on another machine" }]);
  await kubectl(machine, "uncordon", node.node);
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
    node.node,
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
  await kubectl(machine, "uncordon", node.node);
  await installation.observed(first, "running$");
  expect(await installation.inNotebook(first, 'print(open("/home/user/kept.txt").read())')).toBe("still here");
}, 400_000);
