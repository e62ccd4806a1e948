import { ApiException, type KubernetesObject, type V1Secret } from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { copyPullSecrets } from "./pull-secrets.ts";
import { type KubernetesSettingsInput, parseSettings } from "./settings.ts";

const settings = (more: Partial<KubernetesSettingsInput> = {}) =>
  parseSettings({
    environments: {},
    sizes: {},
    home: { size: "1Gi" },
    imagePullSecrets: ["registry"],
    team: {},
    network: { from: [{ addresses: "10.0.0.0/8" }], to: [] },
    ...more,
  });
const DOCKER = "kubernetes.io/dockerconfigjson";
const secret = (name: string, type: string, value: string): V1Secret => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace: "release", uid: "u", resourceVersion: "7", labels: { "kept-by": "an operator" } },
  type,
  data: { ".dockerconfigjson": value },
});

/** An API that holds these secrets of one namespace, and what is applied to it. */
function cluster(...held: V1Secret[]) {
  const applied: KubernetesObject[] = [];
  const asked: string[] = [];
  const client = {
    core: {
      readNamespacedSecret: async ({ namespace, name }: { namespace: string; name: string }) => {
        asked.push(`${namespace}/${name}`);
        const found = held.find(({ metadata }) => metadata?.namespace === namespace && metadata.name === name);
        if (found === undefined) throw new ApiException(404, "Not found", undefined, {});
        return found;
      },
    },
    apply: async <T extends KubernetesObject>(object: T) => {
      applied.push(object);
      return object;
    },
  };
  return { client, applied, asked };
}

it("copies the secrets of registries into a team's namespace, without what was theirs where they lie", async () => {
  const { client, applied } = cluster(secret("registry", DOCKER, "a"), secret("mirror", DOCKER, "b"));
  const copied = settings({ imagePullSecrets: ["registry", "mirror"], imagePullSecretsNamespace: "release" });
  expect(await copyPullSecrets(client, copied, "team-1")).toEqual([]);
  const labels = { "app.kubernetes.io/managed-by": "sluice", "sluice.dev/team": "team-1" };
  expect(applied).toEqual(
    [
      ["registry", "a"],
      ["mirror", "b"],
    ].map(([name, value]) => ({
      ...{ apiVersion: "v1", kind: "Secret", type: DOCKER, data: { ".dockerconfigjson": value } },
      metadata: { name, namespace: "sluice-team-1", labels },
    })),
  );
});

it("says which secret is missing, or is none of a registry, and copies no such one", async () => {
  const { client, applied } = cluster(secret("keys", "Opaque", "secret"), secret("mirror", DOCKER, "b"));
  const named = ["registry", "keys", "mirror"];
  const told = await copyPullSecrets(
    client,
    settings({ imagePullSecrets: named, imagePullSecretsNamespace: "release" }),
    "team-1",
  );
  expect(told).toEqual([
    "The pull secret registry is not in the namespace release. An image that needs it cannot be pulled; ask an admin to put it there.",
    "The secret keys is not one of a registry (Opaque), and is not copied. An image that needs it cannot be pulled; ask an admin to check the settings.",
  ]);
  expect(applied.map(({ metadata }) => metadata?.name)).toEqual(["mirror"]);
});

it("leaves it to others where no namespace is named", async () => {
  const { client, applied, asked } = cluster(secret("registry", DOCKER, "a"));
  expect(await copyPullSecrets(client, settings(), "team-1")).toEqual([]);
  expect([applied, asked]).toEqual([[], []]);
});
