import { ApiException, type KubernetesObject, type V1PersistentVolumeClaim } from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { aWorkspaceSpec } from "#server/launchers/testing.ts";
import { applyHome } from "./home.ts";
import { parseSettings } from "./settings.ts";

const settings = parseSettings({
  ...{ environments: {}, sizes: {}, home: { size: "20Gi" }, team: {} },
  network: { from: [{ addresses: "10.0.0.0/8" }], to: [] },
});
const said =
  'persistentvolumeclaims "ws-1" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize';
const refused = new ApiException(403, "Forbidden", JSON.stringify({ message: said }), {});
const sizeOf = (claim: V1PersistentVolumeClaim) => claim.spec?.resources?.requests?.storage;

/** A cluster that holds a claim of this size, or none; `fails` with these errors, one after another. */
function cluster(there: string | undefined, ...fails: Error[]) {
  const applied: (string | undefined)[] = [];
  const told: string[] = [];
  const client = {
    claim: async () => (there === undefined ? undefined : { spec: { resources: { requests: { storage: there } } } }),
    apply: async <T extends KubernetesObject>(object: T): Promise<T> => {
      applied.push(sizeOf(object));
      const error = fails.shift();
      if (error !== undefined) throw error;
      return object;
    },
  };
  const start = async () => sizeOf(await applyHome(client, settings, aWorkspaceSpec(), (line) => told.push(line)));
  return { start, applied, told };
}

it("makes a home as large as the settings say, and a smaller one larger", async () => {
  for (const there of [undefined, "20Gi", "10Gi"]) {
    const { start, told } = cluster(there);
    expect([await start(), told]).toEqual(["20Gi", []]);
  }
});

it("goes on with the home as it is where the cluster does not make it larger, and says so", async () => {
  // As the launcher hands over what the API server refuses.
  const { start, applied, told } = cluster("10Gi", new Error("The cluster refuses the workspace", { cause: refused }));
  expect(await start()).toBe("10Gi");
  expect(applied).toEqual(["20Gi", "10Gi"]);
  expect(told).toEqual([
    `The home folder stays at 10Gi: the cluster does not make it 20Gi (${said}). An admin knows whether its storage can grow.`,
  ]);
});

it("fails where there is no home yet, where the size is not what is refused, and where nobody answers", async () => {
  await expect(cluster(undefined, refused).start()).rejects.toBe(refused);
  await expect(cluster("20Gi", refused).start()).rejects.toBe(refused);
  const busy = new ApiException(429, "Too many requests", "", {});
  await expect(cluster("10Gi", busy).start()).rejects.toBe(busy);
  const still = new ApiException(403, "Forbidden", "", {});
  await expect(cluster("10Gi", refused, still).start()).rejects.toBe(still);
});
