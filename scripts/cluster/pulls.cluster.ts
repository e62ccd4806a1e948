/** Workspaces whose images come from a registry that asks who pulls. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { kubectl } from "#scripts/cluster/cluster.ts";
import { clusterAt } from "#scripts/cluster/place.ts";
import { REGISTRY, registrySecret, startRegistry } from "#scripts/cluster/registry.ts";
import { useTestDatabase } from "#server/db/testing.ts";
import {
  type Installation,
  smallSettings,
  startInstallation,
  testCluster,
} from "#server/launchers/kubernetes/testing.ts";

const cluster = testCluster();
const machine = clusterAt();
/** Where the admin has put the secret. */
const NAMESPACE = "pulls-admin";
const IMAGE = `${REGISTRY}/sluice/cuda-python`;

let registry: Awaited<ReturnType<typeof startRegistry>>;
let installation: Installation;
let image: string;

beforeAll(async () => {
  registry = await startRegistry(machine);
  image = `${IMAGE}@${await registry.push(cluster.workspaceImage, `${IMAGE}:1`)}`;
  await kubectl(machine, "create", "namespace", NAMESPACE);
  const size = "small";
  const settings = smallSettings(cluster, "pulls", {
    environments: { "cuda-python": { image, size }, "not-there": { image: `${IMAGE}:2`, size } },
    imagePullSecrets: ["registry"],
    imagePullSecretsNamespace: NAMESPACE,
  });
  installation = await startInstallation(await useTestDatabase({ max: 10 }), cluster, { settings, homes: 4 });
}, 180_000);
afterAll(async () => {
  await installation?.stop();
  await registry?.stop();
  await kubectl(machine, "delete", "namespace", NAMESPACE, "--wait=false");
});

/** Puts the registry's secret, for launches from now on. */
async function putSecret(password?: string): Promise<void> {
  await kubectl(machine, "delete", "secret", "registry", "--namespace", NAMESPACE, "--ignore-not-found");
  await cluster.objects.create(registrySecret("registry", NAMESPACE, password));
  await installation.restartReconciler();
}

it("says that the registry refuses the cluster's sign-in when the secret is wrong", async () => {
  await putSecret("wrong");
  await installation.observed(
    await installation.launch("wrong secret"),
    `failed: The workspace did not start. The registry does not let the cluster pull the image ${image}: 401 Unauthorized. Ask an admin to check its name and user and password in the pull secret registry.`,
  );
});

it("pulls an image by its digest with the registry's secret, and tells that it does", async () => {
  await putSecret();
  const id = await installation.launch("by digest");
  await installation.observed(id, "running$");
  const told = await installation.told(id);
  expect(told).toContain(`Pulling: Pulling image "${image}"`);
  expect(told).toMatch(/Pulled: Successfully pulled image .* in \S+ .*Image size: \d+ bytes/);
  expect(await installation.inNotebook(id, "print(6 * 7)")).toBe("42");
});

it("says that the registry does not have the image", async () => {
  await installation.observed(
    await installation.launch("not there", "not-there"),
    `failed: The workspace did not start. The image ${IMAGE}:2 is not in its registry. Ask an admin to check its name`,
  );
});

it("says that the registry does not answer, and waits for it", async () => {
  await registry.stop();
  const id = await installation.launch("no registry", "not-there");
  await expect
    .poll(() => installation.told(id), { timeout: 60_000, interval: 200 })
    .toContain(`The registry of the image ${IMAGE}:2 cannot be reached: `);
  expect((await installation.row(id)).observed).toBe("starting");
});
