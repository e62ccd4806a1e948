import type { V1Pod } from "@kubernetes/client-node";
import { expect, it, onTestFinished, vi } from "vitest";
import { logger } from "#server/log.ts";
import { BoundPods } from "./bound-pods.ts";
import { startApi } from "./testing-api.ts";

const NONE = () => [];
const pod = (nodeName: string, cpu: string): V1Pod => ({
  spec: { nodeName, containers: [{ name: "c", resources: { requests: { cpu } } }] },
});

/** What pods hold on nodes of an API server that answers this. */
async function against(answer: (asked: URL) => Promise<object | number> | object | number, deadlineMs?: number) {
  const api = await startApi(answer);
  vi.useFakeTimers({ toFake: ["Date", "performance"] });
  onTestFinished(async () => {
    vi.useRealTimers();
    await api.stop();
  });
  const bound = new BoundPods(api.client.core, logger("test"), deadlineMs === undefined ? {} : { deadlineMs });
  const cpuOn = async (node: string, ours: () => V1Pod[] = NONE) => (await bound.taken(ours))?.get(node)?.get("cpu");
  return { asked: api.asked, bound, cpuOn };
}

it("asks for others' pods that are on nodes and have not ended, page by page", async () => {
  const { asked, cpuOn } = await against(({ searchParams }) =>
    searchParams.get("continue") === "more"
      ? { metadata: {}, items: [pod("a", "500m")] }
      : { metadata: { continue: "more" }, items: [pod("a", "1"), pod("b", "2")] },
  );
  expect([await cpuOn("a"), await cpuOn("b"), await cpuOn("c")]).toEqual([1.5, 2, undefined]);
  expect(asked.map(({ pathname }) => pathname)).toEqual(["/api/v1/pods", "/api/v1/pods"]);
  expect(Object.fromEntries(asked[0]?.searchParams ?? [])).toEqual({
    labelSelector: "app.kubernetes.io/managed-by!=sluice",
    fieldSelector: "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
    limit: "500",
  });
});

it("asks once for all who want to know within ten seconds, and again after them", async () => {
  let cpu = 1;
  const { asked, cpuOn } = await against(() => ({ metadata: {}, items: [pod("a", `${cpu++}`)] }));
  expect(await Promise.all(Array.from({ length: 50 }, () => cpuOn("a")))).toEqual(Array(50).fill(1));
  vi.advanceTimersByTime(9_000);
  expect(await cpuOn("a")).toBe(1);
  expect(asked).toHaveLength(1);
  vi.advanceTimersByTime(1_000);
  expect(await cpuOn("a")).toBe(2);
});

it("knows nothing where the cluster does not tell, and asks no more often then", async () => {
  let failure: number | undefined = 403;
  const { asked, bound, cpuOn } = await against(() => failure ?? { metadata: {}, items: [pod("a", "1")] });
  expect(await bound.taken(NONE)).toBeUndefined();
  expect(await bound.taken(NONE)).toBeUndefined();
  expect(asked).toHaveLength(1);
  failure = undefined;
  vi.advanceTimersByTime(10_000);
  expect(await cpuOn("a")).toBe(1);
});

it("takes nothing for known of which a part is missing", async () => {
  const { bound } = await against(({ searchParams }) =>
    searchParams.has("continue") ? 410 : { metadata: { continue: "more" }, items: [pod("a", "1")] },
  );
  expect(await bound.taken(NONE)).toBeUndefined();
});

it("counts ours once for all who want to know within ten seconds", async () => {
  const { cpuOn } = await against(() => ({ metadata: {}, items: [pod("a", "1")] }));
  let counted = 0;
  const ours = () => {
    counted++;
    return [pod("a", "2"), pod("b", "4")];
  };
  const all = await Promise.all(Array.from({ length: 500 }, () => cpuOn("a", ours)));
  expect([new Set(all), await cpuOn("b", ours), counted]).toEqual([new Set([3]), 4, 1]);
});

it("begins no list while one goes on, and keeps what it gives from when it is there", async () => {
  const { promise: slow, resolve } = Promise.withResolvers<object>();
  const { asked, cpuOn } = await against(() => slow);
  const first = cpuOn("a");
  await expect.poll(() => asked.length).toBe(1);
  vi.advanceTimersByTime(15_000);
  const second = cpuOn("a");
  resolve({ metadata: {}, items: [pod("a", "1")] });
  expect(await Promise.all([first, second])).toEqual([1, 1]);
  vi.advanceTimersByTime(9_000);
  expect([await cpuOn("a"), asked.length]).toEqual([1, 1]);
  vi.advanceTimersByTime(1_000);
  expect([await cpuOn("a"), asked.length]).toEqual([1, 2]);
});

it("waits no longer for a list than it may take, also in the middle of it, and asks again later", async () => {
  let answers = false;
  const { bound, cpuOn } = await against(({ searchParams }) => {
    if (answers) return { metadata: {}, items: [pod("a", "1")] };
    const page = { metadata: { continue: "more" }, items: [] };
    return searchParams.has("continue") ? new Promise<object>(() => undefined) : page;
  }, 100);
  expect(await bound.taken(NONE)).toBeUndefined();
  answers = true;
  expect(await bound.taken(NONE)).toBeUndefined();
  vi.advanceTimersByTime(10_000);
  expect(await cpuOn("a")).toBe(1);
});
