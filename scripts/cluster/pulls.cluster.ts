/** Workspaces whose images come from a registry that asks who pulls. */
import { PatchStrategy, type V1Pod } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { kubectl, makeNamespace } from "#scripts/cluster/cluster.ts";
import { clusterAt } from "#scripts/cluster/place.ts";
import { registryAt, registrySecret, startRegistry } from "#scripts/cluster/registry.ts";
import { startClusterWatch } from "#server/broker/cluster/cluster-watch.ts";
import { useTestDatabase } from "#server/db/testing.ts";
import { borrowingPod } from "#server/launchers/kubernetes/pods/borrowing-pod.ts";
import {
  type Installation,
  smallSettings,
  startInstallation,
  testCluster,
} from "#server/launchers/kubernetes/testing.ts";
import { createLive } from "#server/live.ts";
import { logger } from "#server/log.ts";

const cluster = testCluster();
const machine = clusterAt();
/** Where the admin has put the secret. */
const NAMESPACE = "pulls-admin";
/** Where a pod borrows by a label. */
const JOBS = "pulls-jobs";
const REGISTRY = registryAt(5000);
const IMAGE = `${REGISTRY}/sluice/cuda-python`;

const secrets = { imagePullSecrets: ["registry"], imagePullSecretsNamespace: NAMESPACE };

let registry: Awaited<ReturnType<typeof startRegistry>>;
let installation: Installation;
let image: string;

beforeAll(async () => {
  registry = await startRegistry(machine, REGISTRY);
  image = `${IMAGE}@${await registry.push(cluster.workspaceImage, `${IMAGE}:1`)}`;
  for (const name of [NAMESPACE, JOBS]) await makeNamespace(machine, name);
  const size = "small";
  const settings = smallSettings(cluster, "pulls", {
    environments: { "cuda-python": { image, size }, "not-there": { image: `${IMAGE}:2`, size } },
    ...secrets,
  });
  installation = await startInstallation(await useTestDatabase({ max: 10 }), cluster, { settings, homes: 4 });
}, 400_000);
afterAll(async () => {
  await installation?.stop();
  await registry?.stop();
  await kubectl(machine, "delete", "namespace", NAMESPACE, JOBS, "--wait=false");
});

/** Puts the registry's secret, for launches from now on. */
async function putSecret(password?: string): Promise<void> {
  await kubectl(machine, "delete", "secret", "registry", "--namespace", NAMESPACE, "--ignore-not-found");
  await cluster.objects.create(registrySecret(REGISTRY, "registry", NAMESPACE, password));
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

it("pulls the client's image for a pod that borrows, with a secret that is copied to where the pod is", async () => {
  const metadata = { name: "borrows", namespace: JOBS };
  const labels = { "sluice.dev/gpu": "0.5" };
  const client = `${REGISTRY}/sluice/client`;
  const pods = {
    image: `${client}@${await registry.push(cluster.clientImage, `${client}:1`)}`,
    imagePullSecrets: ["registry"],
    namespaces: { [JOBS]: [{ team: "vision", person: "ada@example.com" }] },
  };
  const settings = smallSettings(cluster, "pulls", { ...secrets, pods });
  const { database } = installation;
  const live = createLive(database.sql);
  const watch = startClusterWatch({ database, live, log: logger("test"), settings });
  onTestFinished(async () => {
    await watch.stop();
    await live.close();
  });
  // What the webhook makes of it (the API server asks that in chart.cluster.ts).
  const spec = { containers: [{ name: "main", image: cluster.bareImage, command: ["/program"] }] };
  const wish = { amount: "0.5", gpuType: "soft", team: "vision", person: "ada@example.com", waitSeconds: 60 };
  const around = { settings: settings.pods ?? never(), brokerUrl: "https://broker.invalid", authority: undefined };
  const made = borrowingPod({ metadata: { ...metadata, labels }, spec }, wish, around);
  const pod = { apiVersion: "v1", kind: "Pod", ...made };
  // It gets its labels once it is made: another file's release of the chart refuses such pods in namespaces of no team.
  const gated = { ...pod.spec, schedulingGates: [{ name: "test.sluice.dev/labels" }] };
  await cluster.objects.create({ ...pod, metadata: { ...pod.metadata, labels: {} }, spec: gated });
  const change = { ...{ apiVersion: "v1", kind: "Pod" }, metadata: { ...metadata, labels: pod.metadata?.labels } };
  const ungated = { ...change, spec: { schedulingGates: [] } };
  await cluster.objects.patch(ungated, undefined, undefined, "tester", undefined, PatchStrategy.MergePatch);
  const copied = async () => {
    const { status } = await cluster.objects.read<V1Pod>({ apiVersion: "v1", kind: "Pod", metadata });
    return status?.initContainerStatuses?.find(({ name }) => name === "sluice-libraries")?.state?.terminated?.exitCode;
  };
  await expect.poll(copied, { timeout: 120_000 }).toBe(0);
});

function never(): never {
  throw new Error("no settings of pods");
}

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
    .poll(() => installation.told(id), { timeout: 120_000, interval: 200 })
    .toContain(`The registry of the image ${IMAGE}:2 cannot be reached: `);
  expect((await installation.row(id)).observed).toBe("starting");
});
