import type { V1ControllerRevision, V1Pod } from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { nextUpdate } from "./gpud-update.ts";

const ownerReferences = [{ apiVersion: "apps/v1", kind: "DaemonSet", name: "sluice-gpud", uid: "u" }];
const revision = (number: number, hash: string): V1ControllerRevision => ({
  metadata: { name: `sluice-gpud-${hash}`, labels: { "controller-revision-hash": hash }, ownerReferences },
  revision: number,
});
const pod = (node: string, hash: string, { ready = true, ending = false } = {}): V1Pod => ({
  metadata: {
    ...{ name: `gpud-${node}`, labels: { "controller-revision-hash": hash }, ownerReferences },
    ...(ending ? { deletionTimestamp: new Date() } : {}),
  },
  spec: { nodeName: node, containers: [] },
  status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
});
const revisions = [revision(2, "new"), revision(1, "old")];
const nodes = new Set(["a", "b", "c"]);
const next = (...pods: V1Pod[]) => {
  const found = nextUpdate("sluice-gpud", pods, revisions, { nodes });
  return typeof found === "object" ? found.nodeName : found;
};

it("replaces older gpuds one after another, and none while one is on its way", () => {
  expect(next(pod("b", "old"), pod("a", "old"), pod("c", "new"))).toBe("a");
  expect(next(pod("b", "old"), pod("a", "old", { ending: true }))).toBe("wait");
  expect(next(pod("b", "old"), pod("a", "new", { ready: false }))).toBe("wait");
  expect(next(pod("b", "old"), pod("a", "new"))).toBe("b");
  expect(next(pod("b", "new"), pod("a", "new"))).toBeUndefined();
});

it("waits for the successor of the one that has just gone", () => {
  expect(nextUpdate("sluice-gpud", [pod("b", "old")], revisions, { nodes, updating: "a" })).toBe("wait");
  const made = [pod("b", "old"), pod("a", "new")];
  expect(nextUpdate("sluice-gpud", made, revisions, { nodes, updating: "a" })).toMatchObject({ nodeName: "b" });
});

it("replaces one of an older version that does not come up", () => {
  expect(next(pod("a", "old", { ready: false }))).toBe("a");
});

it("goes on without what is on a node that does not answer", () => {
  expect(next(pod("dead", "new", { ready: false }), pod("b", "old"))).toBe("b");
  expect(next(pod("dead", "old", { ending: true }), pod("b", "old"))).toBe("b");
  expect(next(pod("dead", "old"))).toBeUndefined();
  expect(nextUpdate("sluice-gpud", [pod("b", "old")], revisions, { nodes, updating: "dead" })).toMatchObject({
    nodeName: "b",
  });
});

it("leaves pods and revisions of other sets alone", () => {
  const others = { ...pod("a", "old"), metadata: { labels: { "controller-revision-hash": "old" } } };
  expect(next(others)).toBeUndefined();
  expect(nextUpdate("another", [pod("a", "old")], revisions, { nodes })).toBeUndefined();
});
