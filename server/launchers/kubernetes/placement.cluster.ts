/** Workspaces run where the settings say for the size that was chosen at launch. */
import { type KubernetesObject, PatchStrategy, type V1Node, type V1Pod } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { useTestDatabase } from "#server/db/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { setSize } from "#server/services/workspace/set-size.ts";
import { start } from "#server/services/workspace/start.ts";
import { stop } from "#server/services/workspace/stop.ts";
import { namespaceOf, podName } from "./objects.ts";
import { type Installation, SMALL, smallSettings, startInstallation, testCluster } from "./testing.ts";

const cluster = testCluster();
const LARGE = "test-large";
const settings = smallSettings(cluster, "placement", {
  sizes: {
    small: SMALL,
    large: {
      ...SMALL,
      nodeSelector: { "test.sluice.dev/pool": "large" },
      tolerations: [{ key: "test.sluice.dev/pool", value: "large", effect: "NoSchedule" }],
      priorityClass: LARGE,
      runtimeClass: LARGE,
    },
  },
});
const classes: (KubernetesObject & Record<string, unknown>)[] = [
  {
    ...{ apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name: LARGE } },
    ...{ value: 4321, preemptionPolicy: "Never" },
  },
  { apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata: { name: LARGE }, handler: "runc" },
];

let installation: Installation;
let id: string;

beforeAll(async () => {
  for (const one of classes) await cluster.objects.create(one);
  // The sizes are those that a new installation offers: Small, Medium, Large.
  installation = await startInstallation(await useTestDatabase({ max: 10 }), cluster, { settings, homes: 2 });
});
afterAll(async () => {
  await changeNode({ labels: { "test.sluice.dev/pool": null } }, []);
  await installation?.stop();
  for (const one of classes) await cluster.objects.delete(one).catch(() => undefined);
});

async function changeNode(metadata: object, taints?: NonNullable<V1Node["spec"]>["taints"]): Promise<void> {
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "node-1", ...metadata } };
  const change = { ...node, ...(taints && { spec: { taints } }) };
  await cluster.objects.patch(change, undefined, undefined, "tester", undefined, PatchStrategy.MergePatch);
}

async function pod(): Promise<V1Pod> {
  const { teamId, generation } = await installation.row(id);
  const metadata = { name: podName({ id, generation }), namespace: namespaceOf(settings, teamId) };
  return await cluster.objects.read<V1Pod>({ apiVersion: "v1", kind: "Pod", metadata });
}

it("waits for a node that the chosen size wants, and says which label that has", async () => {
  const { world } = installation;
  ({ id } = await create(world.member.ctx, { name: "large", image: "cuda-python", size: "Large" }));
  installation.made.push(id);
  await expect
    .poll(() => installation.told(id), { timeout: 120_000, interval: 200 })
    .toContain("no node has the label test.sluice.dev/pool=large");
});

it("runs there past the taint that keeps others off, in the size's priority and runtime class", async () => {
  await changeNode({ labels: { "test.sluice.dev/pool": "large" } }, [
    { key: "test.sluice.dev/pool", value: "large", effect: "NoSchedule" },
  ]);
  await installation.observed(id, "running$");
  expect((await pod()).spec).toMatchObject({
    ...{ nodeName: "node-1", priorityClassName: LARGE, priority: 4321, preemptionPolicy: "Never" },
    runtimeClassName: LARGE,
    containers: [{ resources: { requests: { cpu: "200m" }, limits: { cpu: "4" } } }],
  });
  expect(await installation.inNotebook(id, "print(6 * 7)")).toBe("42");
});

it("goes by the size that is chosen later from the next start on, which that node does not take", async () => {
  const { ctx } = installation.world.member;
  await setSize(ctx, { id, size: "Small" });
  await stop(ctx, { id });
  await installation.observed(id, "stopped");
  await start(ctx, { id });
  await expect
    .poll(() => installation.told(id), { timeout: 120_000, interval: 200 })
    .toContain("No node has room for this workspace: nodes are kept for others");
  const { spec } = await pod();
  expect([spec?.nodeSelector, spec?.runtimeClassName, spec?.priority]).toEqual([undefined, undefined, 0]);
  await changeNode({}, []);
  await installation.observed(id, "running$");
});
