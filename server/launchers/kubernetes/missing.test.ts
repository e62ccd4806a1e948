import type { V1Node, V1NodeSelector, V1Pod } from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { addTo, beyondAll, isLargeEnough, missingOf } from "./missing.ts";

const GI = 2 ** 30;
const node = (name: string, cpu: string, memory: string, more: V1Node["spec"] = {}): V1Node => ({
  ...{ metadata: { name, labels: { pool: "notebooks", "kubernetes.io/hostname": name } }, spec: more },
  status: { allocatable: { cpu, memory, pods: "3" }, conditions: [{ type: "Ready", status: "True" }] },
});
const bound = (nodeName: string | undefined, cpu: string, memory = "0", phase = "Running"): V1Pod => ({
  spec: { ...(nodeName && { nodeName }), containers: [{ name: "c", resources: { requests: { cpu, memory } } }] },
  status: { phase },
});
const pod: V1Pod = {
  spec: {
    nodeSelector: { pool: "notebooks" },
    containers: [{ name: "workspace", resources: { requests: { cpu: "4", memory: "8Gi" } } }],
  },
};
const ask = (nodes: V1Node[], pods: V1Pod[], names = ["cpu", "memory"], volumes: (V1NodeSelector | undefined)[] = []) =>
  missingOf(pod, names, nodes, { taken: addTo(new Map(), pods), volumes });

it("takes from a node what pods there ask for, not those that wait or have ended", () => {
  const pods = [
    bound("a", "1"),
    bound("a", "1500m"),
    bound("a", "100m", "0", "Pending"),
    bound("a", "2", "0", "Succeeded"),
    bound("a", "2", "0", "Failed"),
    bound(undefined, "2", "0", "Pending"),
    bound("b", "2"),
  ];
  expect(ask([node("a", "4", "16Gi")], pods)).toEqual([{ name: "cpu", free: 1.4, missing: 2.6 }]);
});

it("counts who is told later, and names a node that has become smaller than what is on it", () => {
  const taken = addTo(addTo(new Map(), [bound("a", "3")]), [bound("a", "2")]);
  const missing = missingOf(pod, ["cpu"], [node("a", "4500m", "16Gi")], { taken, volumes: [] });
  expect(missing).toEqual([{ name: "cpu", free: -0.5, missing: 4.5 }]);
});

it("names all that lacks, on the node that lacks least", () => {
  const pods = [bound("a", "3", "14Gi"), bound("b", "1", "14Gi"), bound("c", "4", "9Gi")];
  const [a, b, c] = [node("a", "4", "16Gi"), node("b", "4", "16Gi"), node("c", "4", "16Gi")];
  expect(ask([a, b, c], pods)).toEqual([
    { name: "cpu", free: 3, missing: 1 },
    { name: "memory", free: 2 * GI, missing: 6 * GI },
  ]);
  expect(ask([a, c], pods, ["cpu"])).toEqual([{ name: "cpu", free: 1, missing: 3 }]);
  expect(ask([c], pods)).toEqual([
    { name: "cpu", free: 0, missing: 4 },
    { name: "memory", free: 7 * GI, missing: GI },
  ]);
});

it("looks at no node that would not take the pod", () => {
  const full = node("full", "4", "16Gi");
  const pods = [bound("full", "3")];
  const short = [{ name: "cpu", free: 1, missing: 3 }];
  const silent = { ...node("silent", "64", "1Ti"), status: { conditions: [{ type: "Ready", status: "Unknown" }] } };
  const elsewhere = { ...node("elsewhere", "64", "1Ti"), metadata: { name: "elsewhere", labels: { pool: "gpu" } } };
  const others = [
    node("tainted", "64", "1Ti", { taints: [{ key: "gpu", effect: "NoSchedule" }] }),
    node("cordoned", "64", "1Ti", { unschedulable: true }),
    silent,
    elsewhere,
  ];
  for (const other of others) {
    expect(ask([other, full], pods)).toEqual(short);
    expect(ask([other], pods)).toEqual([]);
  }
  const there = { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: ["full"] }] };
  const less = node("less", "4", "16Gi");
  expect(ask([less, full], [...pods, bound("less", "2")])).toEqual([{ name: "cpu", free: 2, missing: 2 }]);
  const bothBound = [...pods, bound("less", "2")];
  expect(ask([less, full], bothBound, ["cpu"], [undefined, { nodeSelectorTerms: [there] }])).toEqual(short);
});

it("says nothing where a node has room by now", () => {
  expect(ask([node("a", "4", "16Gi"), node("b", "4", "16Gi")], [bound("a", "3")])).toEqual([]);
});

it("counts places for pods as well", () => {
  const pods = ["0", "0", "0"].map((cpu) => bound("a", cpu));
  expect(ask([node("a", "4", "16Gi")], pods, ["cpu", "pods"])).toEqual([{ name: "pods", free: 0, missing: 1 }]);
});

it("has no rest of fractions, and misses nothing that is not asked for", () => {
  const pods = Array.from({ length: 3 }, () => bound("a", "100m", "1Gi"));
  expect(ask([node("a", "4300m", "16Gi")], pods, ["cpu"])).toEqual([]);
  const small = bound(undefined, "300m");
  const missing = missingOf(small, ["cpu", "memory"], [node("a", "500m", "2Gi")], {
    ...{ taken: addTo(new Map(), pods), volumes: [] },
  });
  expect(missing).toEqual([{ name: "cpu", free: 0.2, missing: 0.1 }]);
});

it("takes a node for large enough that has enough of everything, and names what the nearest lacks", () => {
  const [wide, tall] = [node("wide", "16", "4Gi"), node("tall", "3", "64Gi")];
  expect([wide, tall, node("both", "4", "8Gi")].map((one) => isLargeEnough(one, pod))).toEqual([false, false, true]);
  expect(beyondAll(pod, [wide, tall])).toEqual([{ name: "cpu", free: 3, missing: 1 }]);
  expect(beyondAll(pod, [wide, tall, node("both", "4", "8Gi")])).toEqual([]);
  expect(beyondAll(pod, [])).toEqual([]);
});

it("takes a node to have nothing of what it does not name", () => {
  const gpu: V1Pod = { spec: { containers: [{ name: "c", resources: { requests: { "example.com/gpu": "2" } } }] } };
  expect(isLargeEnough(node("a", "4", "16Gi"), gpu)).toBe(false);
  expect(beyondAll(gpu, [node("a", "4", "16Gi")])).toEqual([{ name: "example.com/gpu", free: 0, missing: 2 }]);
  const none = { ...node("full", "4", "16Gi"), status: { allocatable: { "example.com/gpu": "2", pods: "0" } } };
  expect(beyondAll(gpu, [none])).toEqual([{ name: "pods", free: 0, missing: 1 }]);
});
