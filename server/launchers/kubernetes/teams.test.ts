import { ApiException, type KubernetesObject, type V1ResourceQuota } from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { DEFAULT_EGRESS_POLICY } from "#server/contracts/egress.ts";
import { logger } from "#server/log.ts";
import { parseSettings } from "./settings.ts";
import { putNetworkPolicy, putTeam, putTeams } from "./teams.ts";

const settings = (quota: Record<string, string> = {}) =>
  parseSettings({
    ...{ environments: {}, sizes: {}, home: { size: "1Gi" }, team: { quota } },
    network: { from: [{ addresses: "10.0.0.0/8" }], to: [] },
  });
const namespace = (name: string, team: string, more: object = {}): KubernetesObject => ({
  ...{ apiVersion: "v1", kind: "Namespace" },
  metadata: { name, labels: { "app.kubernetes.io/managed-by": "sluice", "sluice.dev/team": team }, ...more },
});
const ours: V1ResourceQuota = {
  ...{ apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "sluice", namespace: "sluice-team-1" } },
  spec: { hard: { "limits.cpu": "64" } },
};

/** A cluster with these objects of ours; `refuses`: nothing can be put into these namespaces. */
function cluster(held: KubernetesObject[], refuses: readonly string[] = []) {
  const done: string[] = [];
  const told = ({ kind, metadata }: KubernetesObject) => `${kind} ${metadata?.namespace ?? ""}/${metadata?.name}`;
  const client = {
    core: {
      readNamespacedSecret: async () => Promise.reject(new ApiException(404, "Not found", undefined, {})),
      listNamespacedSecret: async () => ({ items: [] }),
      deleteNamespacedSecret: async () => ({}),
    },
    apply: async <T extends KubernetesObject>(object: T): Promise<T> => {
      if (refuses.includes(object.metadata?.namespace ?? "")) throw new ApiException(403, "Forbidden", undefined, {});
      done.push(`put ${told(object)}`);
      return object;
    },
    list: async <T extends KubernetesObject>(_: string, kind: string, selector: string, place?: string) => {
      expect(selector).toContain("app.kubernetes.io/managed-by=sluice");
      return held.filter((one) => one.kind === kind && one.metadata?.namespace === place) as T[];
    },
    remove: async (object: KubernetesObject) => void done.push(`remove ${told(object)}`),
  };
  return { client, done };
}

it("takes away a quota that the settings no longer name, and leaves it where they do", async () => {
  const { client, done } = cluster([ours]);
  expect(await putTeam(client, settings({ "limits.cpu": "64" }), "team-1", DEFAULT_EGRESS_POLICY)).toEqual([]);
  expect(done).toContain("put ResourceQuota sluice-team-1/sluice");
  expect(done.filter((one) => one.startsWith("remove"))).toEqual([]);
  done.length = 0;
  expect(await putTeam(client, settings(), "team-1", DEFAULT_EGRESS_POLICY)).toEqual([]);
  expect(done).toContain("put NetworkPolicy sluice-team-1/sluice-workspaces");
  expect(done.filter((one) => one.includes("Quota"))).toEqual(["remove ResourceQuota sluice-team-1/sluice"]);
});

it("puts what the settings say for every team, and for none of another installation or one that goes", async () => {
  const { client, done } = cluster([
    namespace("sluice-team-1", "team-1"),
    namespace("sluice-team-2", "team-2"),
    namespace("other-team-3", "team-3"),
    namespace("sluice-team-4", "team-4", { deletionTimestamp: new Date() }),
  ]);
  await putTeams(client, settings(), async () => DEFAULT_EGRESS_POLICY, logger("test"));
  expect(done.filter((one) => one.includes("NetworkPolicy"))).toEqual([
    "put NetworkPolicy sluice-team-1/sluice-workspaces",
    "put NetworkPolicy sluice-team-2/sluice-workspaces",
  ]);
});

it("goes on with the other teams where one cannot be put, and says so, that it is tried again", async () => {
  const teams = [namespace("sluice-team-1", "team-1"), namespace("sluice-team-2", "team-2")];
  const { client, done } = cluster(teams, ["sluice-team-1"]);
  await expect(putTeams(client, settings(), async () => DEFAULT_EGRESS_POLICY, logger("test"))).rejects.toThrow(
    "1 teams' objects could not be put",
  );
  expect(done).toContain("put NetworkPolicy sluice-team-2/sluice-workspaces");
});

it("puts a changed network policy where the team has a namespace of this installation", async () => {
  const { client, done } = cluster([
    namespace("sluice-team-1", "team-1"),
    namespace("other-team-2", "team-2"),
    namespace("sluice-team-3", "team-3", { deletionTimestamp: new Date() }),
  ]);
  const read: string[] = [];
  const policyOf = async (teamId: string) => {
    read.push(teamId);
    return DEFAULT_EGRESS_POLICY;
  };
  for (const team of ["team-1", "team-2", "team-3", "team-4"]) {
    await putNetworkPolicy(client, settings(), team, policyOf);
  }
  expect(done).toEqual(["put NetworkPolicy sluice-team-1/sluice-workspaces"]);
  expect(read).toEqual(["team-1"]);
});
