/** What the chart gives the broker: rights in the cluster, and settings that the launcher reads. */
import { readFile } from "node:fs/promises";
import { loadYaml, type V1PolicyRule } from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { workspacesValues } from "./settings.ts";

const CHART = "deploy/helm/sluice";

it("gives the broker's account these rights in the cluster, and no more", async () => {
  const template = await readFile(`${CHART}/templates/broker.yaml`, "utf8");
  const [, text = ""] = /^kind: ClusterRole\n.*?^(rules:\n.*?)^---$/ms.exec(template) ?? [];
  const { rules } = loadYaml<{ rules: V1PolicyRule[] }>(text);
  const granted = rules.flatMap(({ apiGroups = [], resources = [], verbs }) =>
    apiGroups.flatMap((group) =>
      resources.map((resource) => [group === "" ? resource : `${resource}.${group}`, verbs.toSorted().join(" ")]),
    ),
  );
  expect(granted.toSorted()).toEqual(
    Object.entries({
      configmaps: "create get list patch watch",
      "csidrivers.storage.k8s.io": "get",
      events: "create list watch",
      limitranges: "create get list patch watch",
      namespaces: "create get list patch",
      "networkpolicies.networking.k8s.io": "create get list patch watch",
      nodes: "list watch",
      persistentvolumeclaims: "create delete get list patch watch",
      persistentvolumes: "create delete get list patch",
      "poddisruptionbudgets.policy": "create get patch",
      pods: "create delete get list patch watch",
      "pods/log": "get",
      resourcequotas: "create delete get list patch watch",
      // Also of the registries: copied into teams' namespaces, listed there by label, and withdrawn.
      secrets: "create delete get list patch",
      services: "create delete get list patch watch",
      "tokenreviews.authentication.k8s.io": "create",
    }),
  );
});

it("has defaults for workspaces that the launcher reads", async () => {
  const { workspaces } = loadYaml<{ workspaces: unknown }>(await readFile(`${CHART}/values.yaml`, "utf8"));
  expect(workspacesValues.safeParse(workspaces)).toMatchObject({ success: true });
  const { network } = workspacesValues.shape;
  const { dns } = network.parse((workspaces as { network: unknown }).network);
  expect(dns).toEqual(network.parse({ to: [] }).dns);
});
