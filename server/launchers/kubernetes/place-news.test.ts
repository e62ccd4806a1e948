import type { V1Pod } from "@kubernetes/client-node";
import { expect, it, onTestFinished, vi } from "vitest";
import { logger } from "#server/log.ts";
import { PlaceWatch } from "./place-news.ts";
import { parseSettings } from "./settings.ts";
import { startApi } from "./testing-api.ts";

const required = { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["1"] }] }] };
const pod: V1Pod = {
  metadata: { uid: "1", namespace: "sluice-team-1" },
  spec: {
    containers: [],
    volumes: ["home", "data"].map((name) => ({ name, persistentVolumeClaim: { claimName: `ws-${name}` } })),
  },
};
const onNode: V1Pod = { ...pod, spec: { ...pod.spec, containers: [], nodeName: "a" } };

/** Of a cluster whose claims have these volumes, which may change. */
async function watchOf(volumes: Record<string, string | undefined>) {
  const api = await startApi(({ pathname }) => {
    if (pathname.includes("/persistentvolumes/")) return { spec: { nodeAffinity: { required } } };
    return { spec: { volumeName: volumes[pathname.split("/").at(-1) ?? ""] } };
  });
  vi.useFakeTimers({ toFake: ["Date", "performance"] });
  onTestFinished(async () => {
    vi.useRealTimers();
    await api.stop();
  });
  const settings = parseSettings({
    ...{ environments: {}, sizes: {}, home: { size: "1Gi" }, team: {} },
    network: { from: [{ addresses: "10.0.0.0/8" }], to: [] },
  });
  const places = new PlaceWatch(api.client, settings, logger("test"));
  const wheres = async (of: V1Pod) => (await places.volumesOf(of))?.map(({ where }) => where);
  return { asked: api.asked, places, wheres };
}

it("asks once where volumes can be used that are there, also of a pod that has no node", async () => {
  const { asked, places } = await watchOf({ "ws-home": "pv-1", "ws-data": "pv-2" });
  const found = ["the home folder", "the home folder"].map((purpose) => ({ purpose, where: required }));
  expect(await places.volumesOf(pod)).toEqual(found);
  expect(asked).toHaveLength(4);
  vi.advanceTimersByTime(60 * 60_000);
  expect([await places.volumesOf(pod), await places.volumesOf(onNode)]).toEqual([found, found]);
  expect(asked).toHaveLength(4);
  places.forget(pod);
  await places.volumesOf(pod);
  expect(asked).toHaveLength(8);
});

it("asks again after a while while a claim waits for its volume", async () => {
  const volumes: Record<string, string | undefined> = { "ws-home": "pv-1" };
  const { asked, wheres } = await watchOf(volumes);
  expect(await wheres(pod)).toEqual([required, undefined]);
  volumes["ws-data"] = "pv-2";
  vi.advanceTimersByTime(9_000);
  expect([await wheres(pod), asked.length]).toEqual([[required, undefined], 3]);
  vi.advanceTimersByTime(1_000);
  expect([await wheres(pod), asked.length]).toEqual([[required, required], 7]);
});

it("asks at once when the pod has its node, as volumes may get their place with it", async () => {
  const volumes: Record<string, string | undefined> = {};
  const { wheres } = await watchOf(volumes);
  expect(await wheres(pod)).toEqual([undefined, undefined]);
  Object.assign(volumes, { "ws-home": "pv-1", "ws-data": "pv-2" });
  expect(await wheres(onNode)).toEqual([required, required]);
});
