import type { V1Node, V1NodeSelectorTerm, V1Pod } from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { admits, isMeantFor, isOpenTo } from "./eligible.ts";

const node = (spec: V1Node["spec"] = {}, ready = "True"): V1Node => ({
  metadata: { name: "b", labels: { pool: "notebooks", zone: "1", cores: "16" } },
  spec,
  status: { conditions: [{ type: "Ready", status: ready }] },
});
const tainted = (key: string, effect = "NoSchedule") => node({ taints: [{ key, effect }] });
const pod: V1Pod = {
  spec: {
    nodeSelector: { pool: "notebooks" },
    tolerations: [{ key: "notebooks", operator: "Exists", effect: "NoSchedule" }],
    containers: [],
  },
};
const where = (...nodeSelectorTerms: V1NodeSelectorTerm[]) => ({ nodeSelectorTerms });
const only = (key: string, operator: string, ...values: string[]) =>
  where({ matchExpressions: [{ key, operator, values }] });

it("means a node for a pod that the pod's labels, tolerations and volumes allow", () => {
  for (const one of [node(), tainted("notebooks"), tainted("old", "PreferNoSchedule")])
    expect(isMeantFor(one, pod, [undefined, only("zone", "In", "1", "2")])).toBe(true);
  expect(isMeantFor(node(), { spec: { nodeSelector: { pool: "gpu" }, containers: [] } })).toBe(false);
  expect(isMeantFor(tainted("gpu"), pod)).toBe(false);
  expect(isMeantFor(tainted("notebooks", "NoExecute"), pod)).toBe(false);
  expect(isMeantFor(node(), pod, [undefined, only("zone", "In", "2")])).toBe(false);
});

it.each([
  "node.kubernetes.io/unschedulable",
  "node.cloudprovider.kubernetes.io/uninitialized",
  "ToBeDeletedByClusterAutoscaler",
  "DeletionCandidateOfClusterAutoscaler",
  "karpenter.sh/disrupted",
  "karpenter.sh/unregistered",
  "node.cilium.io/agent-not-ready",
  "ebs.csi.aws.com/agent-not-ready",
])("means a node for it that has %s for now, which is not open to it", (key) => {
  expect([isMeantFor(tainted(key), pod), isOpenTo(tainted(key), pod)]).toEqual([true, false]);
});

it("opens no node that is cordoned or silent, though it is meant", () => {
  for (const one of [node({ unschedulable: true }), node({}, "Unknown")])
    expect([isMeantFor(one, pod), isOpenTo(one, pod)]).toEqual([true, false]);
  expect(isOpenTo(node(), pod)).toBe(true);
});

it.each([
  ["In", "zone", ["1"], true],
  ["NotIn", "zone", ["1"], false],
  ["NotIn", "rack", ["1"], true],
  ["Exists", "zone", [], true],
  ["DoesNotExist", "zone", [], false],
  ["Gt", "cores", ["8"], true],
  ["Lt", "cores", ["8"], false],
  ["Gt", "rack", ["8"], false],
])("reads %s of %s %j", (operator, key, values, holds) => {
  expect(admits(only(key, operator, ...values), node())).toBe(holds);
});

it("takes one term that holds, with its fields, and none that is empty", () => {
  const elsewhere = { matchExpressions: [{ key: "zone", operator: "In", values: ["2"] }] };
  const named = (name: string) => ({ matchFields: [{ key: "metadata.name", operator: "In", values: [name] }] });
  expect(admits(where(elsewhere, named("b")), node())).toBe(true);
  expect(admits(where({ ...elsewhere, ...named("b") }, named("a")), node())).toBe(false);
  expect(admits(where({}), node())).toBe(false);
  expect(admits(where({ matchExpressions: [], matchFields: [] }, elsewhere), node())).toBe(false);
  expect(admits(where(), node())).toBe(false);
});
