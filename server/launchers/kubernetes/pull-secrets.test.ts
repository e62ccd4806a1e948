import {
  ApiException,
  type CoreV1ApiDeleteNamespacedSecretRequest,
  type KubernetesObject,
  type V1Secret,
} from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { copyPullSecrets, podCopies, teamCopies } from "./pull-secrets.ts";
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
const COPY = {
  "app.kubernetes.io/managed-by": "sluice",
  "sluice.dev/team": "team-1",
  "sluice.dev/pull-secret": "copy",
};
const secret = (name: string, type: string, value: string): V1Secret => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace: "release", uid: "u", resourceVersion: "7", labels: { "kept-by": "an operator" } },
  type,
  data: { ".dockerconfigjson": value },
});

/** What a team's namespace holds of this name: a copy of ours, or with other labels what an admin put there. */
const inTeam = (name: string, type: string, labels: Record<string, string> = COPY): V1Secret => ({
  ...secret(name, type, "old"),
  metadata: { name, namespace: "sluice-team-1", uid: `uid-${name}`, labels },
});

/** An API that holds these secrets; `done` is what was changed, in that order. */
function cluster(...held: V1Secret[]) {
  const applied: KubernetesObject[] = [];
  const asked: string[] = [];
  const done: string[] = [];
  const find = (namespace: string, name: string) => {
    const found = held.find(({ metadata }) => metadata?.namespace === namespace && metadata.name === name);
    if (found === undefined) throw new ApiException(404, "Not found", undefined, {});
    return found;
  };
  const client = {
    core: {
      readNamespacedSecret: async ({ namespace, name }: { namespace: string; name: string }) => {
        asked.push(`${namespace}/${name}`);
        return find(namespace, name);
      },
      listNamespacedSecret: async ({
        namespace,
        labelSelector = "",
      }: {
        namespace: string;
        labelSelector?: string;
      }) => {
        const selected = labelSelector.split(",").map((one) => one.split("="));
        const matches = (labels: Record<string, string> = {}) =>
          selected.every(([key = "", value]) => key in labels && (value === undefined || labels[key] === value));
        return {
          items: held.filter(({ metadata }) => metadata?.namespace === namespace && matches(metadata.labels)),
        };
      },
      deleteNamespacedSecret: async ({ namespace, name, body }: CoreV1ApiDeleteNamespacedSecretRequest) => {
        const found = find(namespace, name);
        if (body?.preconditions?.uid !== found.metadata?.uid) throw new ApiException(409, "Conflict", undefined, {});
        held.splice(held.indexOf(found), 1);
        done.push(`delete ${namespace}/${name}`);
        return {};
      },
    },
    apply: async <T extends KubernetesObject>(object: T) => {
      applied.push(object);
      done.push(`apply ${object.metadata?.namespace}/${object.metadata?.name}`);
      return object;
    },
  };
  return { client, applied, asked, done };
}

it("copies the secrets of registries into a team's namespace, without what was theirs where they lie", async () => {
  const { client, applied } = cluster(secret("registry", DOCKER, "a"), secret("mirror", DOCKER, "b"));
  const copied = settings({ imagePullSecrets: ["registry", "mirror"], imagePullSecretsNamespace: "release" });
  expect(await copyPullSecrets(client, teamCopies(copied, "team-1"))).toEqual([]);
  expect(applied).toEqual(
    [
      ["registry", "a"],
      ["mirror", "b"],
    ].map(([name, value]) => ({
      ...{ apiVersion: "v1", kind: "Secret", type: DOCKER, data: { ".dockerconfigjson": value } },
      metadata: { name, namespace: "sluice-team-1", labels: COPY },
    })),
  );
});

it("says which secret is missing, or is none of a registry, and copies no such one", async () => {
  const { client, applied } = cluster(secret("keys", "Opaque", "secret"), secret("mirror", DOCKER, "b"));
  const named = ["registry", "keys", "mirror"];
  const told = await copyPullSecrets(
    client,
    teamCopies(settings({ imagePullSecrets: named, imagePullSecretsNamespace: "release" }), "team-1"),
  );
  expect(told).toEqual([
    "The pull secret registry is not in the namespace release. An image that needs it cannot be pulled; ask an admin to put it there.",
    "The secret keys is not one of a registry (Opaque), and is not copied. An image that needs it cannot be pulled; ask an admin to check the settings.",
  ]);
  expect(applied.map(({ metadata }) => metadata?.name)).toEqual(["mirror"]);
});

it("leaves it to others where no namespace is named", async () => {
  const { client, applied, asked } = cluster(secret("registry", DOCKER, "a"));
  expect(await copyPullSecrets(client, teamCopies(settings(), "team-1"))).toEqual([]);
  expect([applied, asked]).toEqual([[], []]);
});

it("uses what an admin has put into a team's namespace, and never changes it, with or without a source", async () => {
  const { client, done } = cluster(
    secret("registry", DOCKER, "a"),
    inTeam("registry", "kubernetes.io/dockercfg", {}),
    inTeam("mirror", DOCKER, { "app.kubernetes.io/managed-by": "Helm", "sluice.dev/pull-secret": "copy" }),
  );
  const named = { imagePullSecrets: ["registry", "mirror"], imagePullSecretsNamespace: "release" };
  expect(await copyPullSecrets(client, teamCopies(settings(named), "team-1"))).toEqual([]);
  expect(await copyPullSecrets(client, teamCopies(settings({ imagePullSecrets: [] }), "team-1"))).toEqual([]);
  expect(done).toEqual([]);
});

it("puts a copy anew, and makes one of another type again", async () => {
  const { client, applied, done } = cluster(
    secret("registry", DOCKER, "a"),
    secret("mirror", DOCKER, "b"),
    inTeam("registry", "kubernetes.io/dockercfg"),
    inTeam("mirror", DOCKER),
  );
  const named = { imagePullSecrets: ["registry", "mirror"], imagePullSecretsNamespace: "release" };
  expect(await copyPullSecrets(client, teamCopies(settings(named), "team-1"))).toEqual([]);
  expect(done).toEqual(["delete sluice-team-1/registry", "apply sluice-team-1/registry", "apply sluice-team-1/mirror"]);
  expect(applied.map((object) => (object as V1Secret).type)).toEqual([DOCKER, DOCKER]);
});

it("withdraws copies that are no longer named, or whose source is gone or is none of a registry", async () => {
  const { client, done } = cluster(
    secret("registry", DOCKER, "a"),
    secret("keys", "Opaque", "secret"),
    ...["registry", "former", "gone", "keys"].map((name) => inTeam(name, DOCKER)),
    inTeam("ws-1-variables", "Opaque", { "app.kubernetes.io/managed-by": "sluice", "sluice.dev/workspace": "ws-1" }),
  );
  const named = { imagePullSecrets: ["registry", "gone", "keys"], imagePullSecretsNamespace: "release" };
  expect(await copyPullSecrets(client, teamCopies(settings(named), "team-1"))).toHaveLength(2);
  expect(done).toEqual([
    "apply sluice-team-1/registry",
    ...["former", "gone", "keys"].map((name) => `delete sluice-team-1/${name}`),
  ]);
});

it("withdraws the last copy when none is named any more, and without a source leaves those that are", async () => {
  const { client, asked, done } = cluster(inTeam("registry", DOCKER));
  expect(await copyPullSecrets(client, teamCopies(settings(), "team-1"))).toEqual([]);
  expect([asked, done]).toEqual([[], []]);
  expect(await copyPullSecrets(client, teamCopies(settings({ imagePullSecrets: [] }), "team-1"))).toEqual([]);
  expect(done).toEqual(["delete sluice-team-1/registry"]);
});

it("leaves what an admin puts in the place of a copy while that is withdrawn", async () => {
  const own = inTeam("registry", DOCKER, {});
  const { client, done } = cluster(own);
  const before = { ...inTeam("registry", DOCKER), metadata: { ...inTeam("registry", DOCKER).metadata, uid: "before" } };
  client.core.listNamespacedSecret = async () => ({ items: [before] });
  expect(await copyPullSecrets(client, teamCopies(settings({ imagePullSecrets: [] }), "team-1"))).toEqual([]);
  expect(done).toEqual([]);
});

it("copies those of the client's image to where pods borrow, without a team's label", async () => {
  const { client, applied } = cluster(secret("clients", DOCKER, "c"));
  const pods = { image: "client:1", imagePullSecrets: ["clients"] };
  const copies = podCopies(settings({ pods, imagePullSecretsNamespace: "release" }), "ml-vision");
  expect(await copyPullSecrets(client, copies)).toEqual([]);
  const labels = { "app.kubernetes.io/managed-by": "sluice", "sluice.dev/pull-secret": "copy" };
  expect(applied).toMatchObject([{ metadata: { name: "clients", namespace: "ml-vision" }, type: DOCKER }]);
  expect(applied[0]?.metadata?.labels).toEqual(labels);
});
