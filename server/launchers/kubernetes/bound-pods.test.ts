import type { V1Pod } from "@kubernetes/client-node";
import { expect, it, onTestFinished, vi } from "vitest";
import { logger } from "#server/log.ts";
import { BoundPods } from "./bound-pods.ts";
import { startApi } from "./testing-api.ts";

const pod = (nodeName: string, cpu: string): V1Pod => ({
  spec: { nodeName, containers: [{ name: "c", resources: { requests: { cpu } } }] },
});

/** What others hold on nodes of an API server that answers this. */
async function against(answer: (asked: URL) => object | number) {
  const api = await startApi(answer);
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(async () => {
    vi.useRealTimers();
    await api.stop();
  });
  const bound = new BoundPods(api.client.core, logger("test"));
  const cpuOn = async (node: string) => (await bound.others())?.get(node)?.get("cpu");
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
  vi.setSystemTime(Date.now() + 9_000);
  expect(await cpuOn("a")).toBe(1);
  expect(asked).toHaveLength(1);
  vi.setSystemTime(Date.now() + 1_000);
  expect(await cpuOn("a")).toBe(2);
});

it("knows nothing where the cluster does not tell, and asks no more often then", async () => {
  let failure: number | undefined = 403;
  const { asked, bound, cpuOn } = await against(() => failure ?? { metadata: {}, items: [pod("a", "1")] });
  expect(await bound.others()).toBeUndefined();
  expect(await bound.others()).toBeUndefined();
  expect(asked).toHaveLength(1);
  failure = undefined;
  vi.setSystemTime(Date.now() + 10_000);
  expect(await cpuOn("a")).toBe(1);
});

it("takes nothing for known of which a part is missing", async () => {
  const { bound } = await against(({ searchParams }) =>
    searchParams.has("continue") ? 410 : { metadata: { continue: "more" }, items: [pod("a", "1")] },
  );
  expect(await bound.others()).toBeUndefined();
});
