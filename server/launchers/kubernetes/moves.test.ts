import type { V1Node, V1Pod } from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { fits, MoveNotices } from "./moves.ts";

const node = (
  more: { spec?: V1Node["spec"]; ready?: string; labels?: Record<string, string>; memory?: string } = {},
): V1Node => ({
  metadata: { name: "b", labels: { pool: "notebooks", ...more.labels } },
  spec: more.spec ?? {},
  status: {
    allocatable: { cpu: "4", memory: more.memory ?? "8Gi", pods: "110" },
    conditions: [{ type: "Ready", status: more.ready ?? "True" }],
  },
});
const pod: V1Pod = {
  spec: {
    nodeSelector: { pool: "notebooks" },
    tolerations: [{ key: "notebooks", operator: "Exists", effect: "NoSchedule" }],
    containers: [{ name: "workspace", resources: { requests: { cpu: "500m", memory: "2Gi" } } }],
  },
};

it("finds another node by what the pod asks for", () => {
  expect(fits(node(), pod)).toBe(true);
  expect(fits(node({ spec: { taints: [{ key: "notebooks", effect: "NoSchedule" }] } }), pod)).toBe(true);
  expect(fits(node({ spec: { taints: [{ key: "old", effect: "PreferNoSchedule" }] } }), pod)).toBe(true);

  expect(fits(node({ spec: { unschedulable: true } }), pod)).toBe(false);
  expect(fits(node({ ready: "Unknown" }), pod)).toBe(false);
  expect(fits(node({ labels: { pool: "gpu" } }), pod)).toBe(false);
  expect(fits(node({ spec: { taints: [{ key: "gpu", effect: "NoSchedule" }] } }), pod)).toBe(false);
  expect(fits(node({ memory: "1Gi" }), pod)).toBe(false);
  const gpu = {
    spec: { ...pod.spec, containers: [{ name: "c", resources: { requests: { "example.com/gpu": "1" } } }] },
  };
  expect(fits(node(), gpu)).toBe(false);
});

it("goes on with a notice that was interrupted for a while, and begins anew after long", () => {
  const notices = new MoveNotices(600);
  const minute = 60_000;
  expect(notices.left("w", false, 0)).toBeUndefined();
  expect(notices.left("w", true, 0)).toBe(600);
  expect(notices.left("w", true, 200)).toBe(600);
  expect(notices.left("w", false, 250)).toBeUndefined();
  expect(notices.left("w", false, 400)).toBeUndefined();
  expect(notices.left("w", true, 1000)).toBe(350);
  expect(notices.left("other", true, 1000)).toBe(600);
  expect(notices.left("w", false, 1100)).toBeUndefined();
  expect(notices.left("w", true, 1100 + 6 * minute)).toBe(600);
});
