/** For the cluster tests: the cluster that they run in, volumes for homes, and a gpud that its pods reach. */
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { type KubernetesObject, KubernetesObjectApi, type V1PersistentVolume } from "@kubernetes/client-node";
import { eq } from "drizzle-orm";
import { startBroker } from "#server/broker/broker.ts";
import { startReconciler } from "#server/broker/reconciler/reconciler.ts";
import { gpuServers, gpus, images, imageVersions, workspaceEvents, workspaces } from "#server/db/schema/index.ts";
import type { TestDatabase } from "#server/db/testing.ts";
import { env, resetEnv } from "#server/env.ts";
import { startGateway } from "#server/gateway/gateway.ts";
import { send } from "#server/gateway/testing.ts";
import { newId } from "#server/ids.ts";
import { runCode } from "#server/jupyter/run-code.ts";
import { logger } from "#server/log.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { egressPolicyOf } from "#server/services/team/egress-policy-of.ts";
import { makeWorld } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { handover } from "#server/services/workspace/handover.ts";
import { loadConfig } from "./cluster-client.ts";
import { KubernetesLauncher } from "./kubernetes-launcher.ts";
import { FIELD_MANAGER } from "./objects.ts";
import { type KubernetesSettings, type KubernetesSettingsInput, parseSettings } from "./settings.ts";

/** What `npm run test:cluster` tells about its cluster (scripts/cluster/test.ts). */
export function testCluster() {
  const told = (name: string) => {
    const value = process.env[`SLUICE_TEST_CLUSTER_${name}`];
    if (value === undefined) throw new Error("These tests run in a cluster: npm run test:cluster");
    return value;
  };
  const kubeconfig = told("KUBECONFIG");
  const workspaceImages = JSON.parse(told("WORKSPACE_IMAGES")) as { "cuda-python": string } & Record<string, string>;
  return {
    kubeconfig,
    /** Pods reach what listens here. */
    address: told("ADDRESS"),
    folder: told("FOLDER"),
    /** By their environments; `workspaceImage`: the one of most tests. */
    workspaceImages,
    workspaceImage: workspaceImages["cuda-python"],
    controlPlaneImage: told("CONTROL_PLANE_IMAGE"),
    gpudImage: told("GPUD_IMAGE"),
    clientImage: told("CLIENT_IMAGE"),
    /** Has no glibc, and nothing else. */
    bareImage: told("BARE_IMAGE"),
    /** The images as files, by their names. */
    imageFiles: JSON.parse(told("IMAGE_FILES")) as Record<string, string>,
    /** Helm's program. */
    helm: told("HELM"),
    objects: KubernetesObjectApi.makeApiClient(loadConfig(kubeconfig)),
  };
}
export type TestCluster = ReturnType<typeof testCluster>;

/**
 * The storage class of a test file's homes. Each file has its own, because files run at the same time and a volume goes to
 * any claim of its class.
 */
export const storageClassOf = (namespacePrefix: string) => `homes-${namespacePrefix}`;

/** The size of a small installation's environments. */
export const SMALL = { cpu: { request: "100m", limit: "2" }, memory: { request: "256Mi", limit: "2Gi" } };

/**
 * Settings of a small installation: its pods run the workspace's image as `cuda-python`, and reach what a test starts and
 * nothing else. `namespacePrefix` keeps what one test file makes apart from another's; `more`: what a test wants different.
 */
export function smallSettings(
  cluster: TestCluster,
  namespacePrefix: string,
  more: Partial<KubernetesSettingsInput> = {},
): KubernetesSettings {
  const tests = { addresses: `${cluster.address}/32` };
  return parseSettings({
    kubeconfig: cluster.kubeconfig,
    namespacePrefix,
    environments: { "cuda-python": { image: cluster.workspaceImage, size: "small", pull: "Never" } },
    sizes: { small: SMALL },
    home: { size: "1Gi", storageClass: storageClassOf(namespacePrefix) },
    team: {},
    network: { from: [tests], to: [tests] },
    ...more,
  });
}

/**
 * Folders of this machine as volumes, each for one home; gives what deletes them again. All nodes of the cluster are on
 * this machine, so each can use them; with `node` that one alone.
 */
export async function makeVolumes(
  cluster: TestCluster,
  count: number,
  { storageClass, node }: { storageClass: string; node?: string },
): Promise<() => Promise<void>> {
  const label =
    node === undefined ? { key: "kubernetes.io/os", value: "linux" } : { key: "kubernetes.io/hostname", value: node };
  const run = `${process.pid}-${Date.now().toString(36)}`;
  const objects: KubernetesObject[] = [];
  const make = async (object: KubernetesObject & Record<string, unknown>) => {
    await cluster.objects.create(object, undefined, undefined, FIELD_MANAGER).catch((error: unknown) => {
      if (object.kind !== "StorageClass") throw error;
    });
    if (object.kind !== "StorageClass") objects.push(object);
  };
  await make({
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name: storageClass },
    provisioner: "kubernetes.io/no-provisioner",
    volumeBindingMode: "WaitForFirstConsumer",
  });
  const makeVolume = async (index: number) => {
    const name = `home-${run}-${node ?? "any"}-${index}`;
    const folder = path.join(cluster.folder, "volumes", name);
    await mkdir(folder, { recursive: true });
    const volume: V1PersistentVolume = {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name },
      spec: {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteOnce"],
        persistentVolumeReclaimPolicy: "Retain",
        storageClassName: storageClass,
        local: { path: folder },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: label.key, operator: "In", values: [label.value] }] }],
          },
        },
      },
    };
    await make({ ...volume });
  };
  await Promise.all(Array.from({ length: count }, (_, index) => makeVolume(index)));
  return async () => {
    await Promise.all(objects.map((object) => cluster.objects.delete(object).catch(() => undefined)));
  };
}

/** A gpud on the software GPU, as a host beside the cluster, on a free port; settles when it has joined. */
export async function startGpud(cluster: TestCluster, options: { broker: string; token: string }) {
  const state = await mkdtemp(path.join(tmpdir(), "sluice-gpud-"));
  const program = path.resolve("native/target/release/gpud");
  const listen = `${cluster.address}:0`;
  const child = spawn(
    program,
    [
      "join",
      options.broker,
      "--token",
      options.token,
      "--state",
      state,
      "--listen",
      listen,
      "--backend",
      "soft",
      "--name",
      "soft-host",
    ],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const said: string[] = [];
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`gpud was not ready:\n${said.join("\n")}`)), 30_000);
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        said.push(line);
        if (line.includes('"ready":"gpud"')) resolve();
      });
    }
    child.once("exit", (code) => reject(new Error(`gpud ended with ${code}:\n${said.join("\n")}`)));
    child.once("error", reject);
    void timer;
  });
  return {
    stop: async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await ended;
      await rm(state, { recursive: true, force: true });
    },
  };
}

/**
 * Broker, reconciler and gateway of an installation whose workspaces are pods of the cluster, with a gpud beside it and
 * an empty catalogue entry for each environment of the settings.
 */
export async function startInstallation(
  database: TestDatabase,
  cluster: TestCluster,
  { settings, homes }: { settings: KubernetesSettings; homes: number },
) {
  Object.assign(process.env, { SLUICE_LAUNCHERS: "kubernetes", SLUICE_GATEWAY_URL: "http://localhost:3002" });
  resetEnv();
  const broker = await startBroker({ database, env: env(), log: logger("broker"), port: 0, host: "0.0.0.0" });
  process.env.SLUICE_BROKER_URL = `http://${cluster.address}:${broker.port}`;
  resetEnv();
  const world = await makeWorld(database.db);
  // The servers of that world are rows without machines.
  await database.db.delete(gpus);
  await database.db.delete(gpuServers);
  for (const name of Object.keys(settings.environments).filter((one) => one !== "cuda-python"))
    await addToCatalogue(database, name);
  const { token } = await createJoinToken(world.admin.ctx);
  const { storageClass = "" } = settings.home;
  const [dropVolumes, gpud, gateway] = await Promise.all([
    makeVolumes(cluster, homes, { storageClass }),
    startGpud(cluster, { broker: `http://127.0.0.1:${broker.port}`, token }),
    startGateway(database, {
      host: "localhost",
      url: "http://localhost:3002",
      portalUrl: "http://localhost:3000",
      listen: "127.0.0.1",
      port: 0,
      log: logger("gateway"),
    }),
  ]);
  const begin = async (now: KubernetesSettings) => {
    const launcher = new KubernetesLauncher(now, (id) => egressPolicyOf(database.db, id));
    const reconciler = await startReconciler(database, { launchers: new Map([["kubernetes", launcher]]) });
    return { launcher, reconciler };
  };
  let running = await begin(settings);
  const end = async () => {
    await running.reconciler.stop();
    await running.launcher.close();
  };
  const made: string[] = [];

  const row = async (id: string) => {
    const [found] = await database.db.select().from(workspaces).where(eq(workspaces.id, id));
    if (found === undefined) throw new Error("no row");
    return found;
  };
  /** All lines of its steps. */
  const told = async (id: string) => {
    const of = eq(workspaceEvents.workspaceId, id);
    const events = await database.db.select().from(workspaceEvents).where(of).orderBy(workspaceEvents.seq);
    return events.map((event) => event.message).join("\n");
  };
  return {
    ...{ database, world, made, row, told },
    launcher: () => running.launcher,
    /** As when a broker is replaced, perhaps with other settings. */
    restartReconciler: async (now = settings) => {
      await end();
      running = await begin(now);
    },
    launch: async (name: string, image = "cuda-python"): Promise<string> => {
      const { id } = await create(world.member.ctx, { name, image });
      made.push(id);
      return id;
    },
    /** Waits until it has settled in a state; with what its page says, when that says something. */
    observed: async (id: string, wanted: string, timeout = 90_000) => {
      const settled = ["running", "failed", "stopped", "removed"];
      const seen = async () => {
        const { observed, message } = await row(id);
        return settled.includes(observed) && message !== null ? `${observed}: ${message}` : observed;
      };
      const as = new RegExp(`^${wanted}`);
      for (const until = Date.now() + timeout; !as.test(await seen()); await sleep(100))
        if (Date.now() > until) throw new Error(`not ${wanted}, but ${await seen()}\n${await told(id)}`);
    },
    inNotebook: async (id: string, code: string) => {
      const { endpoint, serverToken } = await row(id);
      return await runCode({ endpoint: endpoint ?? "", token: serverToken ?? "" }, code, { timeoutMs: 60_000 });
    },
    /** What the gateway gives to the owner's browser, which came by the portal's link. */
    throughGateway: async (id: string, wanted: string): Promise<{ status: number; body: string }> => {
      const host = `${id}.localhost:3002`;
      const way = new URL((await handover(world.member.ctx, { id })).url);
      const entered = await send(gateway.port, { host, path: `${way.pathname}${way.search}` });
      const cookie = (entered.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
      return await send(gateway.port, { host, path: wanted, headers: { cookie, accept: "text/html" } });
    },
    stop: async () => {
      await running.reconciler.stop();
      // Together, because each is waited for until its pod has ended.
      const left = [...made];
      const lane = async () => {
        for (let id = left.pop(); id !== undefined; id = left.pop())
          await running.launcher.remove(id).catch((error: unknown) => console.error(error));
      };
      await Promise.all(Array.from({ length: 20 }, lane));
      await running.launcher.close();
      await gateway.close();
      await gpud.stop();
      await broker.stop();
      await dropVolumes();
      await database.drop();
    },
  };
}
export type Installation = Awaited<ReturnType<typeof startInstallation>>;

async function addToCatalogue(database: TestDatabase, name: string): Promise<void> {
  const imageId = newId("img");
  await database.db.insert(images).values({ id: imageId, name, title: name, description: "For tests." });
  const version = { version: "0123456789ab", state: "approved", buildState: "ready", spec: {} } as const;
  await database.db.insert(imageVersions).values({ id: newId("imv"), imageId, ...version });
}
