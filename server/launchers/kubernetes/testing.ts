/** For the cluster tests: the cluster that they run in, volumes for homes, and a gpud that its pods reach. */
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { type KubernetesObject, KubernetesObjectApi, type V1PersistentVolume } from "@kubernetes/client-node";
import { loadConfig } from "./cluster-client.ts";
import { FIELD_MANAGER } from "./objects.ts";

/** What `npm run test:cluster` tells about its cluster (scripts/cluster/test.ts). */
export function testCluster() {
  const told = (name: string) => {
    const value = process.env[`SLUICE_TEST_CLUSTER_${name}`];
    if (value === undefined) throw new Error("These tests run in a cluster: npm run test:cluster");
    return value;
  };
  const kubeconfig = told("KUBECONFIG");
  return {
    kubeconfig,
    /** Pods reach what listens here. */
    address: told("ADDRESS"),
    folder: told("FOLDER"),
    workspaceImage: told("WORKSPACE_IMAGE"),
    controlPlaneImage: told("CONTROL_PLANE_IMAGE"),
    gpudImage: told("GPUD_IMAGE"),
    clientImage: told("CLIENT_IMAGE"),
    /** Has no glibc, and nothing else. */
    bareImage: told("BARE_IMAGE"),
    /** Helm's program. */
    helm: told("HELM"),
    objects: KubernetesObjectApi.makeApiClient(loadConfig(kubeconfig)),
  };
}
export type TestCluster = ReturnType<typeof testCluster>;

export const STORAGE_CLASS = "test-homes";

/** Folders of the node as volumes, each for one home; gives what deletes them again. */
export async function makeVolumes(cluster: TestCluster, count: number): Promise<() => Promise<void>> {
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
    metadata: { name: STORAGE_CLASS },
    provisioner: "kubernetes.io/no-provisioner",
    volumeBindingMode: "WaitForFirstConsumer",
  });
  for (let index = 0; index < count; index++) {
    const name = `home-${run}-${index}`;
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
        storageClassName: STORAGE_CLASS,
        local: { path: folder },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: "kubernetes.io/os", operator: "In", values: ["linux"] }] }],
          },
        },
      },
    };
    await make({ ...volume });
  }
  return async () => {
    for (const object of objects) await cluster.objects.delete(object).catch(() => undefined);
  };
}

/** A gpud on the software GPU, as a host beside the cluster; settles when it has joined. */
export async function startGpud(cluster: TestCluster, options: { broker: string; token: string }) {
  const state = await mkdtemp(path.join(tmpdir(), "sluice-gpud-"));
  const program = path.resolve("native/target/release/gpud");
  const listen = `${cluster.address}:3010`;
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
