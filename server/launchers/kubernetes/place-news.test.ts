import type { V1Pod } from "@kubernetes/client-node";
import { expect, it, onTestFinished } from "vitest";
import { logger } from "#server/log.ts";
import { PlaceWatch } from "./place-news.ts";
import { parseSettings } from "./settings.ts";
import { startApi } from "./testing-api.ts";

it("asks again where a pod's volumes can be used until the pod has a node, as they may get their place with it", async () => {
  const required = { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["1"] }] }] };
  const claim: { volumeName?: string } = {};
  const api = await startApi(({ pathname }) =>
    pathname.includes("/persistentvolumes/") ? { spec: { nodeAffinity: { required } } } : { spec: claim },
  );
  onTestFinished(api.stop);
  const settings = parseSettings({
    ...{ environments: {}, sizes: {}, home: { size: "1Gi" }, team: {} },
    network: { from: [{ addresses: "10.0.0.0/8" }], to: [] },
  });
  const places = new PlaceWatch(api.client, settings, logger("test"));
  const pod: V1Pod = {
    metadata: { uid: "1", namespace: "sluice-team-1" },
    spec: { containers: [], volumes: [{ name: "home", persistentVolumeClaim: { claimName: "ws-1" } }] },
  };
  expect(await places.volumesOf(pod)).toEqual([{ purpose: "the home folder", where: undefined }]);
  claim.volumeName = "pv-1";
  const bound = { ...pod, spec: { ...pod.spec, containers: [], nodeName: "a" } };
  const found = [{ purpose: "the home folder", where: required }];
  expect(await places.volumesOf(bound)).toEqual(found);
  const { length } = api.asked;
  expect(await places.volumesOf(bound)).toEqual(found);
  expect(api.asked).toHaveLength(length);
});
