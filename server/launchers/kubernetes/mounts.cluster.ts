/**
 * Exports and buckets that workspaces mount by reference, as far as a cluster without servers for them goes: the API
 * server takes what is built field by field, its controller binds each claim to its own volume and to no other, and the
 * team's restricted namespace takes the pod. Nothing is mounted here (a bucket is in scripts/cluster/buckets.cluster.ts).
 */
import type {
  KubernetesObject,
  V1Namespace,
  V1PersistentVolume,
  V1PersistentVolumeClaim,
  V1Pod,
} from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { DEFAULT_EGRESS_POLICY } from "#server/contracts/egress.ts";
import type { DatasetMount } from "#server/launchers/launcher.ts";
import { aWorkspaceSpec } from "#server/launchers/testing.ts";
import { datasetObjects, homeClaim, ownedBy, teamObjects, workspacePod } from "./objects.ts";
import { smallSettings, testCluster } from "./testing.ts";

const cluster = testCluster();
const settings = smallSettings(cluster, "mounts");
const dataset = (name: string, source: DatasetMount["source"], writable: boolean): DatasetMount => ({
  ...{ id: `dst-${name}`, name, writable, prefetch: false, team: undefined, source },
});
const nfs = { kind: "nfs", server: "nas.example", path: "/export/images" } as const;
const s3 = {
  kind: "s3" as const,
  driver: "s3.csi.example",
  attributes: { bucketName: "measurements" },
  mountOptions: ["allow-other", "uid=1000"],
  secret: { namespace: "storage", name: "bucket-keys" },
};
const spec = aWorkspaceSpec({
  teamId: "team-mounts",
  datasets: [
    dataset("read-nfs", nfs, false),
    dataset("write-nfs", nfs, true),
    dataset("read-s3", s3, false),
    dataset("write-s3", { ...s3, mountOptions: [], secret: undefined }, true),
    dataset("volume", { kind: "volume", claim: "measured" }, false),
  ],
});
const [namespace] = teamObjects(settings, spec.teamId, DEFAULT_EGRESS_POLICY) as [V1Namespace];

let claim: V1PersistentVolumeClaim;
let made: KubernetesObject[] = [];

beforeAll(async () => {
  await cluster.objects.create(namespace);
  // Pods are refused before their namespace has its account.
  const account = { apiVersion: "v1", kind: "ServiceAccount" };
  const metadata = { name: "default", namespace: namespace.metadata?.name ?? "" };
  await vi.waitFor(async () => await cluster.objects.read({ ...account, metadata }), { timeout: 120_000 });
  claim = await cluster.objects.create(homeClaim(spec, settings));
  made = datasetObjects(spec, settings, ownedBy(claim));
  for (const object of made) await cluster.objects.create(object, undefined, undefined, "sluice");
});
afterAll(async () => {
  for (const object of made.filter(({ kind }) => kind === "PersistentVolume"))
    await cluster.objects.delete(object).catch(() => undefined);
  await cluster.objects.delete(namespace).catch(() => undefined);
});

const kept = async <T extends KubernetesObject>(object: KubernetesObject) =>
  await cluster.objects.read<T>({ ...object, metadata: { name: "", ...object.metadata } });

it("keeps server, path, driver, attributes, keys and options as they were told, and reads read-only ones only", async () => {
  const volumes = made.filter(({ kind }) => kind === "PersistentVolume");
  const found = await Promise.all(volumes.map((one) => kept<V1PersistentVolume>(one)));
  const csi = { driver: s3.driver, volumeAttributes: s3.attributes };
  expect(found.map((one) => one.spec)).toMatchObject([
    {
      nfs: { server: nfs.server, path: nfs.path, readOnly: true },
      mountOptions: ["ro"],
      accessModes: ["ReadOnlyMany"],
    },
    { nfs: { server: nfs.server, path: nfs.path }, accessModes: ["ReadWriteMany"] },
    {
      ...{ csi: { ...csi, readOnly: true, nodePublishSecretRef: s3.secret }, mountOptions: s3.mountOptions },
      accessModes: ["ReadOnlyMany"],
    },
    { csi, accessModes: ["ReadWriteMany"] },
  ]);
  // A driver tells volumes apart by their handles.
  expect(new Set(found.map(({ spec: { csi: of } = {} }) => of?.volumeHandle)).size).toBe(3);
});

it("binds each claim to its own volume, which no other claim gets", async () => {
  const rival = made.find(({ kind }) => kind === "PersistentVolumeClaim") as V1PersistentVolumeClaim;
  const metadata = { name: "rival", namespace: namespace.metadata?.name };
  await cluster.objects.create({ ...rival, metadata, spec: { ...rival.spec } });
  const claims = made.filter(({ kind }) => kind === "PersistentVolumeClaim");
  const states = async () => {
    const found = await Promise.all(claims.map((one) => kept<V1PersistentVolumeClaim>(one)));
    return found.map((one) => [one.status?.phase, one.spec?.volumeName === one.metadata?.name]);
  };
  await expect.poll(states, { timeout: 120_000 }).toEqual(claims.map(() => ["Bound", true]));
  expect((await kept<V1PersistentVolumeClaim>({ ...rival, metadata })).status?.phase).toBe("Pending");
});

it("lets the restricted namespace take the pod that mounts all of them, by a dry run", async () => {
  const pod = workspacePod(spec, settings, ownedBy(claim));
  const taken = await cluster.objects.create<V1Pod>(pod, undefined, "All", "sluice");
  const mounts = taken.spec?.containers[0]?.volumeMounts?.filter(({ mountPath }) => mountPath.startsWith("/datasets/"));
  expect(mounts?.map(({ name, readOnly }) => [name, readOnly === true])).toEqual([
    ...[
      ["dst-read-nfs", true],
      ["dst-write-nfs", false],
      ["dst-read-s3", true],
      ["dst-write-s3", false],
    ],
    ["dst-volume", true],
  ]);
  // What a person could try instead of asking an admin for a dataset.
  const volumes = [{ name: "own", nfs: { server: nfs.server, path: nfs.path } }];
  const own = { ...pod, spec: { containers: [], ...pod.spec, volumes: [...(pod.spec?.volumes ?? []), ...volumes] } };
  await expect(cluster.objects.create<V1Pod>(own, undefined, "All")).rejects.toThrow(/restricted volume types.*own/s);
});

it("goes with the workspace: the claims by their owner, the volumes keep what they refer to", async () => {
  await cluster.objects.delete(claim);
  const claims = made.filter(({ kind }) => kind === "PersistentVolumeClaim");
  const left = async () =>
    await Promise.all(
      claims.map((one) =>
        kept(one).then(
          () => true,
          () => false,
        ),
      ),
    );
  await expect.poll(left, { timeout: 120_000 }).toEqual(claims.map(() => false));
  const volumes = made.filter(({ kind }) => kind === "PersistentVolume");
  const phases = async () =>
    await Promise.all(
      volumes.map(async (one) => {
        const { spec, status } = await kept<V1PersistentVolume>(one);
        return [spec?.persistentVolumeReclaimPolicy, status?.phase];
      }),
    );
  await expect.poll(phases, { timeout: 120_000 }).toEqual(volumes.map(() => ["Retain", "Released"]));
});
