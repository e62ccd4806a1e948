import type { V1Pod, V1Service } from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { DEFAULT_EGRESS_POLICY } from "#server/contracts/egress.ts";
import { PRIVATE } from "#server/egress/addresses.ts";
import { aWorkspaceSpec } from "#server/launchers/testing.ts";
import { isAsPut } from "./drift.ts";
import { networkPolicy, serviceBehind, serviceOf, withAddress } from "./objects.ts";
import { leftOutOf, parseSettings } from "./settings.ts";

const gateway = { namespace: { "kubernetes.io/metadata.name": "sluice" }, pods: { app: "gateway" } };
const settings = parseSettings({
  ...{ environments: {}, sizes: {}, home: { size: "20Gi" }, team: {} },
  network: { from: [gateway], to: [{ addresses: "0.0.0.0/0", ports: [443] }] },
});
const wanted = networkPolicy(settings, "team-1", DEFAULT_EGRESS_POLICY).spec;
const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": "sluice" } };
const world = {
  cidr: "0.0.0.0/0",
  except: [...leftOutOf("0.0.0.0/0"), ...PRIVATE.filter((one) => !one.includes(":"))],
};

/** A team's policy as a watch hands it over, with one thing changed. */
function policy(change: { from?: object[]; block?: object; more?: object[] } = {}) {
  const names = wanted?.egress?.[0];
  return {
    podSelector: { matchLabels: { "app.kubernetes.io/component": "workspace" } },
    ingress: [
      {
        ports: [{ protocol: "TCP", port: 8888 }],
        from: change.from ?? [{ podSelector: { matchLabels: { app: "gateway" } }, namespaceSelector }],
      },
    ],
    egress: [
      names,
      { ports: [{ protocol: "TCP", port: 443 }], to: [{ ipBlock: change.block ?? world }] },
      ...(change.more ?? []),
    ],
    policyTypes: ["Ingress", "Egress"],
  };
}

it("takes a policy for what was put, as a list and as a watch hand it over", () => {
  expect(isAsPut(wanted, wanted)).toBe(true);
  expect(isAsPut(wanted, policy())).toBe(true);
});

it.each([
  ["lets anybody of the namespace in", policy({ from: [{ namespaceSelector }] })],
  ["lets somebody else in, too", policy({ from: [{ namespaceSelector }, {}] })],
  ["leaves nothing out", policy({ block: { cidr: "0.0.0.0/0" } })],
  ["allows more", policy({ more: [{}] })],
  ["is empty", {}],
  ["is none", undefined],
])("sees that one %s", (_, found) => {
  expect(isAsPut(wanted, found)).toBe(false);
});

it("knows a workspace's service by its pod, at the address that it had, and sees when it leads elsewhere", () => {
  const spec = aWorkspaceSpec();
  const owner = { apiVersion: "v1", kind: "PersistentVolumeClaim", name: spec.id, uid: "u" };
  const made = serviceOf(spec, settings, owner);
  const there: V1Service = { ...made, spec: { ...made.spec, clusterIP: "10.0.0.7", sessionAffinity: "None" } };
  const pod: V1Pod = { metadata: { ...made.metadata, name: `${spec.id}-1`, annotations: { mine: "kept" } } };
  const knowing = withAddress(pod, there);
  expect(knowing.metadata?.annotations).toEqual({ mine: "kept", "sluice.dev/address": "10.0.0.7" });
  expect(serviceBehind(knowing)).toEqual({ ...made, spec: { ...made.spec, clusterIP: "10.0.0.7" } });
  expect(isAsPut(serviceBehind(knowing)?.spec, there.spec)).toBe(true);
  expect(isAsPut(serviceBehind(knowing)?.spec, { ...there.spec, selector: { app: "other" } })).toBe(false);
  expect(serviceBehind(pod)).toBeUndefined();
  expect(serviceBehind(pod, "10.0.0.8")?.spec?.clusterIP).toBe("10.0.0.8");
});
