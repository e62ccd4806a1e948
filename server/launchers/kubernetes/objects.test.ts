import type { V1NetworkPolicy, V1PersistentVolume, V1PersistentVolumeClaim } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import { DEFAULT_EGRESS_POLICY } from "#server/contracts/egress.ts";
import type { DatasetMount } from "#server/launchers/launcher.ts";
import { aWorkspaceSpec } from "#server/launchers/testing.ts";
import {
  belongingsAmong,
  datasetObjects,
  generationOf,
  homeClaim,
  networkPolicy,
  ownedBy,
  serviceOf,
  teamObjects,
  workspaceOf,
  workspacePod,
  workspaceSecret,
} from "./objects.ts";
import { leftOutOf, parseSettings } from "./settings.ts";

/** What the whole of IPv4 leaves out. */
const CREDENTIALS = ["169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32"];
const PRIVATE_IPV4 = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15"];

const settings = parseSettings({
  environments: { "cuda-python": { image: "registry.example/cuda-python@sha256:0123", size: "gpu-client" } },
  sizes: {
    "gpu-client": {
      cpu: { request: "500m", limit: "4" },
      memory: { request: "1Gi", limit: "8Gi" },
      nodeSelector: { pool: "notebooks" },
      tolerations: [{ key: "notebooks", operator: "Exists", effect: "NoSchedule" }],
      priorityClass: "interactive",
      runtimeClass: "gvisor",
    },
  },
  home: { size: "20Gi", storageClass: "fast" },
  imagePullSecrets: ["registry"],
  team: { quota: { "limits.cpu": "64" } },
  network: {
    from: [{ namespace: { "kubernetes.io/metadata.name": "sluice" }, pods: { "app.kubernetes.io/name": "sluice" } }],
    to: [
      {
        namespace: { "kubernetes.io/metadata.name": "sluice" },
        pods: { "app.kubernetes.io/component": "broker" },
        ports: [3001],
      },
      { addresses: "0.0.0.0/0", ports: [443] },
    ],
  },
});

const large = {
  ...{ cpu: { request: "1", limit: "2" }, memory: { request: "1Gi", limit: "2Gi" } },
  ...{ nodeSelector: { pool: "large" }, tolerations: [], priorityClass: "bulk" },
};

const spec = aWorkspaceSpec({
  generation: 3,
  serverToken: "the-token",
  credential: "slw_the-credential",
  brokerUrl: "https://broker.example",
  variables: { MY_KEY: "my-secret", HOME: "/elsewhere" },
});
const claim: V1PersistentVolumeClaim = { metadata: { name: spec.id, uid: "uid-of-claim" } };
const pod = workspacePod(spec, settings, ownedBy(claim));
const container = pod.spec?.containers[0];

describe("a workspace's pod", () => {
  it("keeps every rule of the restricted Pod Security Standard", () => {
    expect(pod.spec?.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 1000,
      seccompProfile: { type: "RuntimeDefault" },
    });
    expect(container?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      readOnlyRootFilesystem: true,
    });
    const kinds = (pod.spec?.volumes ?? []).flatMap((volume) => Object.keys(volume).filter((key) => key !== "name"));
    expect([...new Set(kinds)].sort()).toEqual(["emptyDir", "persistentVolumeClaim", "secret"]);
    for (const shared of ["hostNetwork", "hostPID", "hostIPC"] as const) expect(pod.spec?.[shared]).toBeUndefined();
  });

  it("has no account of the cluster and hears of no other service", () => {
    expect(pod.spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
  });

  it("runs where its size says, with its size's requests and limits", () => {
    expect(pod.spec).toMatchObject({
      nodeSelector: { pool: "notebooks" },
      tolerations: [
        { key: "notebooks", operator: "Exists", effect: "NoSchedule" },
        { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
        { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute" },
      ],
      priorityClassName: "interactive",
      runtimeClassName: "gvisor",
      imagePullSecrets: [{ name: "registry" }],
    });
    expect(container?.resources).toEqual({
      requests: { cpu: "500m", memory: "1Gi" },
      limits: { cpu: "4", memory: "8Gi" },
    });
  });

  it("runs where the settings say for the size that was chosen, by its name, else where its environment's does", () => {
    const named = { ...settings, sizes: { ...settings.sizes, "extra large": large } };
    const of = (name?: string) =>
      workspacePod(
        { ...spec, size: { ...(name && { name }), cpuMilli: 8000, memoryBytes: 2 ** 30 } },
        named,
        ownedBy(claim),
      );
    expect(of("Extra Large").spec).toMatchObject({ nodeSelector: { pool: "large" }, priorityClassName: "bulk" });
    expect(of("Extra Large").spec?.runtimeClassName).toBeUndefined();
    expect(of("Extra Large").spec?.containers[0]?.resources?.requests?.cpu).toBe("4000m");
    for (const other of ["Medium", undefined])
      expect(of(other).spec).toMatchObject({ nodeSelector: { pool: "notebooks" }, runtimeClassName: "gvisor" });
  });

  it("may use what its size says, and asks for as large a part of it as the environment's own does", () => {
    const sized = { ...spec, size: { cpuMilli: 2000, memoryBytes: 16 * 2 ** 30 } };
    expect(workspacePod(sized, settings, ownedBy(claim)).spec?.containers[0]?.resources).toEqual({
      requests: { cpu: "250m", memory: "2048Mi" },
      limits: { cpu: "2000m", memory: "16384Mi" },
    });
  });

  it("holds no secret itself: token, credential and variables lie in secrets", () => {
    const text = JSON.stringify(pod);
    for (const secret of [spec.serverToken, spec.credential, "my-secret"]) expect(text).not.toContain(secret);
    const secrets = workspaceSecret(spec, settings, ownedBy(claim));
    const plain = secrets.map(({ metadata, data }) => [
      metadata?.name,
      Object.fromEntries(
        Object.entries(data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
      ),
    ]);
    expect(Object.fromEntries(plain)).toEqual({
      [`${spec.id}-variables`]: { ...spec.variables, JUPYTER_TOKEN: "the-token" },
      [`${spec.id}-credential`]: { credential: "slw_the-credential" },
    });
  });

  it("sets its own variables after the user's, which so cannot replace them", () => {
    // Kubernetes: `env` wins over `envFrom`.
    expect(container?.envFrom).toEqual([{ secretRef: { name: `${spec.id}-variables` } }]);
    expect(container?.env).toContainEqual({ name: "HOME", value: "/home/user" });
  });

  it("belongs to its home's claim and names its start", () => {
    expect(pod.metadata?.ownerReferences).toEqual([
      { apiVersion: "v1", kind: "PersistentVolumeClaim", name: spec.id, uid: "uid-of-claim", blockOwnerDeletion: true },
    ]);
    expect(generationOf(pod)).toBe(3);
    expect(serviceOf(spec, settings, ownedBy(claim)).spec?.selector).toEqual({ "sluice.dev/workspace": spec.id });
    expect(homeClaim(spec, settings).spec).toMatchObject({
      storageClassName: "fast",
      resources: { requests: { storage: "20Gi" } },
    });
  });

  it("keeps a home's storage class when the settings have another one, and makes no home smaller", () => {
    const made = (storage: string) => ({
      spec: { storageClassName: "slow", resources: { requests: { storage } } },
    });
    expect(homeClaim(spec, settings, made("1Ti")).spec).toMatchObject(made("1Ti").spec);
    expect(homeClaim(spec, settings, made("500Mi")).spec).toMatchObject(made("20Gi").spec);
  });

  it("is not made for an environment without an image", () => {
    expect(() => workspacePod({ ...spec, environment: "jax" }, settings, ownedBy(claim))).toThrow(
      "The environment jax has no image on this cluster (there is: cuda-python).",
    );
  });
});

describe("a team's namespace", () => {
  it("comes with Pod Security, limits, quota and a policy of the network, in this order", () => {
    const objects = teamObjects(settings, spec.teamId, DEFAULT_EGRESS_POLICY);
    expect(objects.map(({ kind }) => kind)).toEqual([
      "Namespace",
      "LimitRange",
      "ResourceQuota",
      "NetworkPolicy",
      "PodDisruptionBudget",
    ]);
    expect(objects[0]?.metadata).toMatchObject({
      name: `sluice-${spec.teamId}`,
      labels: { "pod-security.kubernetes.io/enforce": "restricted", "app.kubernetes.io/managed-by": "sluice" },
    });
    expect(objects[2]).toMatchObject({ spec: { hard: { "limits.cpu": "64" } } });
    expect(
      teamObjects({ ...settings, team: { quota: {} } }, spec.teamId, DEFAULT_EGRESS_POLICY).map(({ kind }) => kind),
    ).not.toContain("ResourceQuota");
  });

  it("names the broker's own authority beside the world's, and its pods read it", () => {
    const pem = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n";
    const own = { ...settings, certificateAuthority: pem };
    const map = teamObjects(own, spec.teamId, DEFAULT_EGRESS_POLICY).find(({ kind }) => kind === "ConfigMap");
    const file = map !== undefined && "data" in map ? map.data?.["ca.crt"] : undefined;
    expect(file?.startsWith(pem)).toBe(true);
    expect(file?.match(/BEGIN CERTIFICATE/g)?.length).toBeGreaterThan(50);
    const reader = workspacePod(spec, own, ownedBy(claim)).spec?.containers[0];
    const variable = reader?.env?.find(({ name }) => name === "SSL_CERT_FILE")?.value;
    expect(reader?.volumeMounts?.some(({ mountPath }) => `${mountPath}/ca.crt` === variable)).toBe(true);
    expect(container?.env?.some(({ name }) => name === "SSL_CERT_FILE")).toBe(false);
  });

  it("lets only the gateway in, and out only to names and what is allowed, never to private or metadata addresses", () => {
    const policy: V1NetworkPolicy = networkPolicy(settings, spec.teamId, DEFAULT_EGRESS_POLICY);
    expect(policy.spec?.policyTypes).toEqual(["Ingress", "Egress"]);
    expect(policy.spec?.ingress).toEqual([
      {
        _from: [
          {
            namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "sluice" } },
            podSelector: { matchLabels: { "app.kubernetes.io/name": "sluice" } },
          },
        ],
        ports: [{ port: 8888, protocol: "TCP" }],
      },
    ]);
    expect(policy.spec?.egress).toEqual([
      {
        to: [
          {
            namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "kube-system" } },
            podSelector: { matchLabels: { "k8s-app": "kube-dns" } },
          },
        ],
        ports: [
          { port: 53, protocol: "UDP" },
          { port: 53, protocol: "TCP" },
        ],
      },
      {
        to: [
          {
            namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "sluice" } },
            podSelector: { matchLabels: { "app.kubernetes.io/component": "broker" } },
          },
        ],
        ports: [{ port: 3001, protocol: "TCP" }],
      },
      {
        to: [{ ipBlock: { cidr: "0.0.0.0/0", except: [...CREDENTIALS, ...PRIVATE_IPV4] } }],
        ports: [{ port: 443, protocol: "TCP" }],
      },
    ]);
  });

  it("lets out to those whom the settings name for DNS alone, by UDP and TCP, and on their own ports", () => {
    const openshift = { namespace: { "kubernetes.io/metadata.name": "openshift-dns" }, ports: [5353] };
    // Link-local, as what hands out credentials is, but not that.
    const nodeLocal = { addresses: "169.254.20.10/32" };
    const egress = (...dns: object[]) =>
      networkPolicy(
        parseSettings({ ...settings, network: { ...settings.network, to: [], dns } }),
        spec.teamId,
        DEFAULT_EGRESS_POLICY,
      ).spec?.egress;
    expect(egress(nodeLocal, openshift)).toEqual([
      {
        to: [{ ipBlock: { cidr: nodeLocal.addresses } }],
        ports: [
          { port: 53, protocol: "UDP" },
          { port: 53, protocol: "TCP" },
        ],
      },
      {
        to: [{ namespaceSelector: { matchLabels: openshift.namespace } }],
        ports: [
          { port: 5353, protocol: "UDP" },
          { port: 5353, protocol: "TCP" },
        ],
      },
    ]);
    expect(egress(), "nobody, and not everybody").toEqual([]);
  });
});

describe("settings", () => {
  const good = {
    environments: { a: { image: "a:1", size: "s" } },
    sizes: { s: { cpu: { request: "1", limit: "1" }, memory: { request: "1Gi", limit: "1Gi" } } },
    home: { size: "1Gi" },
    team: {},
    network: { from: [{ addresses: "10.0.0.0/8" }], to: [] },
  };

  it("leave what hands out credentials to cloud machines out of larger networks", () => {
    expect(leftOutOf("0.0.0.0/0")).toEqual(CREDENTIALS);
    expect(leftOutOf("100.64.0.0/10")).toEqual(["100.100.100.200/32"]);
    expect(leftOutOf("10.0.0.0/8")).toEqual([]);
    expect(leftOutOf("::/0")).toEqual(["fe80::/10", "fd00:ec2::/32", "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128"]);
    expect(leftOutOf("fd00::/8")).toEqual(["fd00:ec2::/32", "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128"]);
  });

  it("are read with their defaults", () => {
    expect(parseSettings(good)).toMatchObject({ namespacePrefix: "sluice", startSeconds: 600, team: { quota: {} } });
  });

  it.each([
    ["a size that is not there", { environments: { a: { image: "a:1", size: "xl" } } }, 'there is no size "xl"'],
    ["an amount without sense", { home: { size: "much" } }, "home.size: an amount such as"],
    ...["169.254.0.0/16", "169.254.169.254/32", "100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::254/128"].map(
      (addresses): [string, object, string] => [
        `a way to what hands out credentials: ${addresses}`,
        { network: { ...good.network, to: [{ addresses }] } },
        "hand out credentials",
      ],
    ),
    [
      "a server of names where there are credentials",
      { network: { ...good.network, dns: [{ addresses: "169.254.0.0/16" }] } },
      "network.dns.0",
    ],
    ...["10.0.0.0/0", "fd00::/0", "0:0::/0", "0.0.0.0/00"].map((addresses): [string, object, string] => [
      `all addresses by other words: ${addresses}`,
      { network: { ...good.network, to: [{ addresses }] } },
      "all addresses are written 0.0.0.0/0 and ::/0",
    ]),
    ...["10.0.0.0/33", "fd00::/129", "10.0.0/8"].map((addresses): [string, object, string] => [
      `what is no network: ${addresses}`,
      { network: { ...good.network, to: [{ addresses }] } },
      "there is no such network",
    ]),
    [
      "a port that there is not, of pods",
      { network: { ...good.network, to: [{ namespace: { a: "b" }, ports: [70_000] }] } },
      "network.to.0",
    ],
    ["a word that nobody knows", { startSecond: 5 }, "startSecond"],
  ])("refuse %s", (_, change, words) => {
    expect(() => parseSettings({ ...good, ...change })).toThrow(words);
  });
});

describe("datasets", () => {
  const dataset = (name: string, source: DatasetMount["source"], writable = false): DatasetMount => ({
    ...{ id: `dst-${name.padEnd(26, "a")}`, name, team: undefined, source, writable, prefetch: true },
  });
  const images = dataset("images", { kind: "nfs", server: "nas.example", path: "/export/images" });
  const keys = { namespace: "storage", name: "bucket-keys" };
  const bucket = dataset("bucket", {
    ...{ kind: "s3", driver: "s3.csi.example", attributes: { bucketName: "b" }, mountOptions: ["uid=1000"] },
    secret: keys,
  });
  const scratch = dataset("scratch", { kind: "volume", claim: "team-scratch" }, true);
  const local = dataset("local", { kind: "folder", path: "/data/local" });
  const mounting = { ...spec, datasets: [images, bucket, scratch, local] };
  const made = datasetObjects(mounting, settings, ownedBy(claim));
  const volumes = made.filter((each) => each.kind === "PersistentVolume") as V1PersistentVolume[];
  const claims = made.filter((each) => each.kind === "PersistentVolumeClaim") as V1PersistentVolumeClaim[];
  const mountingPod = workspacePod(mounting, settings, ownedBy(claim));

  it("that are exports or buckets have a volume that only this workspace's claim can bind", () => {
    expect(volumes.map(({ metadata }) => metadata?.name)).toEqual([images, bucket].map(({ id }) => `${spec.id}-${id}`));
    for (const [index, volume] of volumes.entries()) {
      const own = claims[index];
      expect(volume.spec?.claimRef).toMatchObject({ namespace: own?.metadata?.namespace, name: own?.metadata?.name });
      expect(own?.spec).toMatchObject({ volumeName: volume.metadata?.name, storageClassName: "" });
      expect(own?.metadata?.ownerReferences).toEqual([ownedBy(claim)]);
      expect(volume.spec?.persistentVolumeReclaimPolicy, "what it refers to stays").toBe("Retain");
      expect(volume.metadata?.labels).toMatchObject(pod.metadata?.labels ?? {});
    }
    expect(volumes[0]?.spec).toMatchObject({
      nfs: { server: "nas.example", path: "/export/images", readOnly: true },
      mountOptions: ["ro"],
    });
    expect(volumes[1]?.spec).toMatchObject({
      csi: {
        ...{ driver: "s3.csi.example", volumeAttributes: { bucketName: "b" }, readOnly: true },
        ...{ nodePublishSecretRef: keys, volumeHandle: volumes[1]?.metadata?.name },
      },
      mountOptions: ["uid=1000"],
    });
  });

  it("are found among what belongs to workspaces, also the volume, which lies in no namespace", () => {
    const named = (objects: { kind?: string; metadata?: { name?: string } }[]) =>
      objects.map(({ kind = "", metadata }) => ({
        ...{ kind, namespace: `sluice-${spec.teamId}`, name: metadata?.name ?? "", workspaceId: spec.id },
      }));
    expect(belongingsAmong(made, settings)).toEqual(named(made));
    // Another installation's of the same cluster.
    const [prefix, ...rest] = spec.teamId.split("-");
    expect(rest).not.toEqual([]);
    for (const namespacePrefix of ["other", `sluice-${prefix}`, "sluic"])
      expect(belongingsAmong(made, { namespacePrefix })).toEqual([]);
  });

  it("belong to a workspace by their labels in its team's namespace alone", () => {
    expect([pod, ...made].map((object) => workspaceOf(object, settings))).toEqual([pod, ...made].map(() => spec.id));
    const moved = (namespace: string, labels = pod.metadata?.labels) =>
      workspaceOf({ ...pod, metadata: { ...pod.metadata, namespace, labels } }, settings);
    expect(moved("default")).toBeUndefined();
    expect(moved("default", { ...pod.metadata?.labels, "sluice.dev/team": "" })).toBeUndefined();
    // A claim of that kind would be believed if a pod could have one.
    const claimRef = { namespace: `sluice-${spec.teamId}` };
    const claiming = { ...pod, metadata: { ...pod.metadata, namespace: "default" }, spec: { ...pod.spec, claimRef } };
    expect(workspaceOf(claiming, settings)).toBeUndefined();
  });

  it("are mounted outside of the home, read-only unless they may be written to", () => {
    const mounts = mountingPod.spec?.containers[0]?.volumeMounts?.filter(({ name }) => name.startsWith("dst-"));
    expect(mounts?.map(({ mountPath, readOnly }) => [mountPath, readOnly])).toEqual([
      ["/datasets/images", true],
      ["/datasets/bucket", true],
      ["/datasets/scratch", false],
    ]);
    const named = mountingPod.spec?.volumes?.filter(({ name }) => name.startsWith("dst-"));
    expect(named?.map((each) => each.persistentVolumeClaim)).toEqual([
      { claimName: `${spec.id}-${images.id}`, readOnly: true },
      { claimName: `${spec.id}-${bucket.id}`, readOnly: true },
      { claimName: "team-scratch", readOnly: false },
    ]);
  });

  it("bring no kind of volume into a pod that the restricted standard refuses", () => {
    const kinds = (mountingPod.spec?.volumes ?? []).flatMap((each) =>
      Object.keys(each).filter((key) => key !== "name"),
    );
    expect([...new Set(kinds)].sort()).toEqual(["emptyDir", "persistentVolumeClaim", "secret"]);
  });
});
