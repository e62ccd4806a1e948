import type { V1Container } from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { requestOf, requestsOf } from "./pod-requests.ts";

const asks = (cpu: string, more: Partial<V1Container> = {}): V1Container => ({
  name: "c",
  resources: { requests: { cpu } },
  ...more,
});
const cpuOf = (containers: V1Container[], initContainers?: V1Container[], more: object = {}) =>
  requestOf({ spec: { containers, ...(initContainers && { initContainers }), ...more } }, "cpu");

it("adds up containers, and takes what comes before them where that is more", () => {
  expect(cpuOf([asks("500m"), asks("1")])).toBe(1.5);
  expect(cpuOf([asks("500m"), { name: "asks for nothing" }])).toBe(0.5);
  expect(cpuOf([asks("1")], [asks("750m"), asks("500m")])).toBe(1);
  expect(cpuOf([asks("1")], [asks("250m"), asks("3")])).toBe(3);
});

it("counts init containers that go on with those that come after them", () => {
  const sidecar = asks("200m", { restartPolicy: "Always" });
  expect(cpuOf([asks("1")], [sidecar, asks("500m")])).toBe(1.2);
  expect(cpuOf([asks("1")], [sidecar, asks("1500m")])).toBe(1.7);
  expect(cpuOf([asks("1")], [asks("1500m"), sidecar])).toBe(1.5);
});

it("adds what running a pod takes besides, and believes what a pod asks for as a whole", () => {
  const overhead = { cpu: "250m", memory: "120Mi" };
  expect(cpuOf([asks("1")], [asks("2")], { overhead })).toBe(2.25);
  expect(cpuOf([asks("1")], [asks("2")], { overhead, resources: { requests: { cpu: "500m" } } })).toBe(0.75);
});

it("names all that a pod asks for, a place among it", () => {
  const gpu = { name: "init", resources: { requests: { "example.com/gpu": "1" } } };
  const spec = { containers: [asks("500m")], initContainers: [gpu], overhead: { memory: "1Ki" } };
  expect(Object.fromEntries(requestsOf({ spec }))).toEqual({ pods: 1, cpu: 0.5, memory: 1024, "example.com/gpu": 1 });
  expect(Object.fromEntries(requestsOf({}))).toEqual({ pods: 1 });
});
