/** The objects of a team and of a workspace, made from plain data: the same input gives the same objects. */
import { rootCertificates } from "node:tls";
import type {
  KubernetesObject,
  V1ConfigMap,
  V1LimitRange,
  V1Namespace,
  V1NetworkPolicy,
  V1ObjectMeta,
  V1OwnerReference,
  V1PersistentVolume,
  V1PersistentVolumeClaim,
  V1Pod,
  V1PodDisruptionBudget,
  V1ResourceQuota,
  V1ResourceRequirements,
  V1Secret,
  V1Service,
  V1Toleration,
  V1Volume,
  V1VolumeMount,
} from "@kubernetes/client-node";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import { jupyterCommand, jupyterVariables } from "#server/launchers/jupyter-process.ts";
import type { Belonging, DatasetMount, WorkspaceSpec } from "#server/launchers/launcher.ts";
import { insideLayout } from "#server/launchers/layout.ts";
import { readAmount } from "./amount.ts";
import { egressPeers, policyPeer } from "./network-peers.ts";
import type { KubernetesSettings, Peer, Size } from "./settings.ts";

/** Who changed a field, in the objects' own records. */
export const FIELD_MANAGER = "sluice";

const [MANAGER, OURS] = ["app.kubernetes.io/managed-by", "sluice"] as const;
/** On everything of ours. */
export const MANAGED = { [MANAGER]: OURS };
export const SELECTOR = `${MANAGER}=${OURS}`;
/** All else, also what has no such label. */
export const NOT_OURS = `${MANAGER}!=${OURS}`;
export const WORKSPACE_LABEL = "sluice.dev/workspace";
export const TEAM_LABEL = "sluice.dev/team";
/** On copies of registries' secrets; one that an admin put there has none. */
export const PULL_SECRET_LABEL = "sluice.dev/pull-secret";
const GENERATION = "sluice.dev/generation";
/** Of the workspace's Service: one that is deleted is made again where the gateway looks for it. */
const ADDRESS = "sluice.dev/address";

export const JUPYTER_PORT = 8888;
const DNS_PORT = 53;
/** The workspace's user in every image. */
const USER = 1000;
/** The credential lies in a volume of its own: what is in it may be read by the workspace's user alone. */
const CREDENTIAL_FOLDER = "/run/secrets/sluice";
/** Whom a workspace trusts when the settings name an authority: that one beside the world's. */
const AUTHORITIES = { configMap: "sluice-authorities", folder: "/run/secrets/authorities", file: "ca.crt" } as const;

export function namespaceOf(settings: Pick<KubernetesSettings, "namespacePrefix">, teamId: string): string {
  return `${settings.namespacePrefix}-${teamId}`;
}

/** Labels that select all objects of one workspace. */
export function workspaceLabels(id: string, teamId: string): Record<string, string> {
  return { ...MANAGED, "app.kubernetes.io/component": "workspace", [WORKSPACE_LABEL]: id, [TEAM_LABEL]: teamId };
}

/**
 * The workspace that an object is for. Its labels alone say nothing: others of the cluster have Sluice, too, and whoever
 * may make a pod anywhere can write what they like on it. Only what lies in the namespace of its team counts; a volume of
 * the cluster lies in none, and counts by its one claim.
 */
export function workspaceOf(
  object: KubernetesObject,
  settings: Pick<KubernetesSettings, "namespacePrefix">,
): string | undefined {
  const { labels } = object.metadata ?? {};
  return namespaceAround(object) === namespaceOf(settings, labels?.[TEAM_LABEL] ?? "")
    ? labels?.[WORKSPACE_LABEL]
    : undefined;
}

function namespaceAround({ kind, metadata, ...object }: KubernetesObject & Pick<V1PersistentVolume, "spec">): string {
  const claim = kind === "PersistentVolume" ? object.spec?.claimRef : undefined;
  return metadata?.namespace ?? claim?.namespace ?? "";
}

/** What there is of workspaces (`workspaceOf`) among objects. */
export function belongingsAmong(
  objects: readonly KubernetesObject[],
  settings: Pick<KubernetesSettings, "namespacePrefix">,
): Belonging[] {
  return objects.flatMap((object) => {
    const { kind = "", metadata } = object;
    const workspaceId = workspaceOf(object, settings);
    if (workspaceId === undefined) return [];
    return [{ kind, namespace: namespaceAround(object), name: metadata?.name ?? "", workspaceId }];
  });
}

/** Which start of the workspace a pod belongs to. */
export function generationOf(pod: V1Pod): number {
  return Number(pod.metadata?.annotations?.[GENERATION] ?? Number.NaN);
}

/** A pod that remembers at which address its workspace's Service is. */
export function withAddress(pod: V1Pod, service: V1Service): V1Pod {
  const annotations = { ...pod.metadata?.annotations, [ADDRESS]: service.spec?.clusterIP ?? "" };
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

/** A team's namespace and its rules, in the order in which they can be made. */
export function teamObjects(settings: KubernetesSettings, teamId: string, egress: EgressPolicy) {
  const namespace = namespaceOf(settings, teamId);
  return [
    teamNamespace(namespace, teamId),
    limits(namespace, teamId, settings),
    ...quota(namespace, teamId, settings),
    ...authorities(namespace, teamId, settings),
    networkPolicy(settings, teamId, egress),
    disruptionBudget(namespace, teamId),
  ];
}

/** Whoever empties a node waits until its workspaces have moved: their people are told first. */
function disruptionBudget(namespace: string, teamId: string): V1PodDisruptionBudget {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: teamMeta(namespace, teamId, "sluice-workspaces"),
    spec: {
      // More than there can be: of pods without a controller the cluster counts no part.
      minAvailable: 1_000_000,
      selector: { matchLabels: { "app.kubernetes.io/component": "workspace" } },
      unhealthyPodEvictionPolicy: "AlwaysAllow",
    },
  };
}

function teamMeta(namespace: string, teamId: string, name: string): V1ObjectMeta {
  return { name, namespace, labels: { ...MANAGED, [TEAM_LABEL]: teamId } };
}

function teamNamespace(name: string, teamId: string): V1Namespace {
  const restricted = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/enforce-version": "latest",
  };
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: { ...MANAGED, [TEAM_LABEL]: teamId, ...restricted } },
  };
}

/** What a container gets that says nothing, so that a quota never refuses it for that. */
function limits(namespace: string, teamId: string, settings: KubernetesSettings): V1LimitRange {
  const [smallest] = Object.values(settings.sizes);
  const amounts =
    smallest === undefined ? { cpu: "1", memory: "1Gi" } : { cpu: smallest.cpu.limit, memory: smallest.memory.limit };
  return {
    apiVersion: "v1",
    kind: "LimitRange",
    metadata: teamMeta(namespace, teamId, "sluice"),
    spec: { limits: [{ type: "Container", _default: amounts, defaultRequest: { cpu: "100m", memory: "128Mi" } }] },
  };
}

function quota(namespace: string, teamId: string, settings: KubernetesSettings): V1ResourceQuota[] {
  if (Object.keys(settings.team.quota).length === 0) return [];
  return [
    {
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: teamMeta(namespace, teamId, "sluice"),
      spec: { hard: settings.team.quota },
    },
  ];
}

/** The broker's authority joined with the world's, because `SSL_CERT_FILE` takes the place of the system's list. */
function authorities(namespace: string, teamId: string, settings: KubernetesSettings): V1ConfigMap[] {
  if (settings.certificateAuthority === undefined) return [];
  return [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: teamMeta(namespace, teamId, AUTHORITIES.configMap),
      data: { [AUTHORITIES.file]: [settings.certificateAuthority.trim(), ...rootCertificates, ""].join("\n") },
    },
  ];
}

/** Name of a team's NetworkPolicy. */
export const NETWORK_POLICY = "sluice-workspaces";

/**
 * Only the gateway and its like come in; out go only names and what the settings allow, narrowed by the team's outgoing
 * network policy.
 */
export function networkPolicy(settings: KubernetesSettings, teamId: string, policy: EgressPolicy): V1NetworkPolicy {
  const { from, to, dns } = settings.network;
  const names = dns.map((peer) => ({ ...peer, ports: peer.ports ?? [DNS_PORT] }));
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: teamMeta(namespaceOf(settings, teamId), teamId, NETWORK_POLICY),
    spec: {
      podSelector: { matchLabels: { "app.kubernetes.io/component": "workspace" } },
      policyTypes: ["Ingress", "Egress"],
      ingress: [{ _from: from.map(policyPeer), ports: [{ port: JUPYTER_PORT, protocol: "TCP" }] }],
      egress: [
        ...names.map((peer) => ({ to: [policyPeer(peer)], ...portsOf(peer, ["UDP", "TCP"]) })),
        ...to.flatMap((peer) => {
          const peers = egressPeers(peer, policy);
          return peers.length === 0 ? [] : [{ to: peers, ...portsOf(peer, ["TCP"]) }];
        }),
      ],
    },
  };
}

function portsOf({ ports }: Peer, protocols: readonly ("UDP" | "TCP")[]) {
  if (ports === undefined) return {};
  return { ports: ports.flatMap((port) => protocols.map((protocol) => ({ port, protocol }))) };
}

/** Secrets of images' registries; nothing else is ever copied to where a team's pods are. */
const REGISTRY_SECRETS = ["kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"];

/** The copy of a registry's secret, as pods there name it; undefined of any other secret. */
export function pullSecret(
  { namespace, labels }: { namespace: string; labels: Record<string, string> },
  { type, data, metadata }: V1Secret,
): V1Secret | undefined {
  if (type === undefined || !REGISTRY_SECRETS.includes(type)) return undefined;
  const meta = { name: metadata?.name ?? "", namespace, labels: { ...labels, [PULL_SECRET_LABEL]: "copy" } };
  return { apiVersion: "v1", kind: "Secret", metadata: meta, type, data };
}

/**
 * Home and packages; all else of the workspace belongs to it and goes with it. `there`: the claim that was made before,
 * perhaps by other settings; it stays in its storage class, and never gets smaller.
 */
export function homeClaim(
  spec: WorkspaceSpec,
  settings: KubernetesSettings,
  there?: V1PersistentVolumeClaim,
): V1PersistentVolumeClaim {
  const before = there?.spec?.resources?.requests?.storage;
  const { size } = settings.home;
  const storage = before !== undefined && readAmount(before) > readAmount(size) ? before : size;
  const storageClass = there?.spec?.storageClassName ?? settings.home.storageClass;
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: {
      name: spec.id,
      namespace: namespaceOf(settings, spec.teamId),
      labels: workspaceLabels(spec.id, spec.teamId),
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage } },
      ...(storageClass === undefined ? {} : { storageClassName: storageClass }),
    },
  };
}

/** Makes the claim the owner: when it is deleted, its dependents are. */
export function ownedBy(claim: V1PersistentVolumeClaim): V1OwnerReference {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    name: claim.metadata?.name ?? "",
    uid: claim.metadata?.uid ?? "",
    blockOwnerDeletion: true,
  };
}

function workspaceMeta(spec: WorkspaceSpec, settings: KubernetesSettings, owner: V1OwnerReference): V1ObjectMeta {
  return {
    name: spec.id,
    namespace: namespaceOf(settings, spec.teamId),
    labels: workspaceLabels(spec.id, spec.teamId),
    ownerReferences: [owner],
  };
}

/** The server's token and what its owner has set, for the environment; the credential, for a file. */
export function workspaceSecret(
  spec: WorkspaceSpec,
  settings: KubernetesSettings,
  owner: V1OwnerReference,
): V1Secret[] {
  const meta = workspaceMeta(spec, settings, owner);
  const secret = (name: string, values: Record<string, string>): V1Secret => ({
    apiVersion: "v1",
    kind: "Secret",
    type: "Opaque",
    metadata: { ...meta, name },
    data: Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
    ),
  });
  return [
    secret(`${spec.id}-variables`, { ...spec.variables, JUPYTER_TOKEN: spec.serverToken }),
    secret(`${spec.id}-credential`, { credential: spec.credential }),
  ];
}

/** The Service of a workspace that runs, at its address; undefined where pod and who asks do not know that. */
export function serviceBehind({ metadata }: V1Pod, known?: string): V1Service | undefined {
  const address = known ?? metadata?.annotations?.[ADDRESS];
  return metadata === undefined || !address ? undefined : workspaceService(metadata.labels ?? {}, metadata, address);
}

/** A stable address for the gateway. `clusterIP`: the one that it had before. */
function workspaceService(labels: Record<string, string>, metadata: V1ObjectMeta, clusterIP?: string): V1Service {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name: labels[WORKSPACE_LABEL],
      namespace: metadata.namespace,
      labels,
      ownerReferences: metadata.ownerReferences,
    },
    spec: {
      type: "ClusterIP",
      selector: { [WORKSPACE_LABEL]: labels[WORKSPACE_LABEL] ?? "" },
      ports: [{ name: "http", port: JUPYTER_PORT, targetPort: JUPYTER_PORT, protocol: "TCP" }],
      // A pod whose node's kubelet is silent, or that is too busy for its probe, still has open notebooks.
      publishNotReadyAddresses: true,
      ...(clusterIP === undefined ? {} : { clusterIP }),
    },
  };
}

export function serviceOf(spec: WorkspaceSpec, settings: KubernetesSettings, owner: V1OwnerReference): V1Service {
  return workspaceService(workspaceLabels(spec.id, spec.teamId), workspaceMeta(spec, settings, owner));
}

/** Of a volume that somebody else fills, the size is no promise and limits nothing; a claim has to name one. */
const ANY_SIZE = { storage: "1Mi" };

/** What a dataset's volume and claim of a workspace are named. */
export const datasetObjectName = (spec: Pick<WorkspaceSpec, "id">, dataset: DatasetMount) => `${spec.id}-${dataset.id}`;

/**
 * Volume and claim of each NFS export and bucket. A restricted namespace lets no pod name an export itself, so each
 * workspace has a volume of the cluster that only its claim can bind; the claim goes with the workspace's home.
 */
export function datasetObjects(
  spec: WorkspaceSpec,
  settings: KubernetesSettings,
  owner: V1OwnerReference,
): (V1PersistentVolume | V1PersistentVolumeClaim)[] {
  const namespace = namespaceOf(settings, spec.teamId);
  const labels = workspaceLabels(spec.id, spec.teamId);
  return spec.datasets.flatMap((dataset) => {
    const name = datasetObjectName(spec, dataset);
    const source = volumeSource(dataset, name);
    if (source === undefined) return [];
    const accessModes = [dataset.writable ? "ReadWriteMany" : "ReadOnlyMany"];
    const volume: V1PersistentVolume = {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name, labels },
      spec: {
        capacity: ANY_SIZE,
        accessModes,
        persistentVolumeReclaimPolicy: "Retain",
        storageClassName: "",
        claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name },
        ...source,
      },
    };
    const claim: V1PersistentVolumeClaim = {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name, namespace, labels, ownerReferences: [owner] },
      spec: { accessModes, storageClassName: "", volumeName: name, resources: { requests: ANY_SIZE } },
    };
    return [volume, claim];
  });
}

function volumeSource(
  { source, writable }: DatasetMount,
  handle: string,
): Pick<NonNullable<V1PersistentVolume["spec"]>, "nfs" | "csi" | "mountOptions"> | undefined {
  const readOnly = !writable;
  if (source.kind === "nfs") {
    const { server, path } = source;
    return { nfs: { server, path, readOnly }, ...(readOnly ? { mountOptions: ["ro"] } : {}) };
  }
  if (source.kind === "s3") {
    const { driver, attributes, mountOptions, secret } = source;
    const keys = secret === undefined ? {} : { nodePublishSecretRef: secret };
    return { csi: { driver, volumeHandle: handle, volumeAttributes: attributes, readOnly, ...keys }, mountOptions };
  }
  return undefined;
}

/** The pod's part: each dataset that a cluster can mount, below one folder. */
function datasetVolumes(spec: WorkspaceSpec): { volumes: V1Volume[]; mounts: V1VolumeMount[] } {
  const mounted = spec.datasets.filter(({ source }) => source.kind !== "folder");
  const nameOf = (dataset: DatasetMount) => dataset.id;
  return {
    volumes: mounted.map((dataset) => {
      const { source, writable } = dataset;
      const claimName = source.kind === "volume" ? source.claim : datasetObjectName(spec, dataset);
      return { name: nameOf(dataset), persistentVolumeClaim: { claimName, readOnly: !writable } };
    }),
    mounts: mounted.map((dataset) => ({
      name: nameOf(dataset),
      mountPath: `${insideLayout.datasets}/${dataset.name}`,
      readOnly: !dataset.writable,
    })),
  };
}

/**
 * So long a pod may stay on a node that says it is not ready. Of one that is silent the cluster cannot tell whether its
 * pods still run, and would end those that do when it is back: the launcher looks whether the workspace answers.
 */
function silentNode({ lostNodeSeconds }: KubernetesSettings): V1Toleration[] {
  const of = (what: string) => ({ key: `node.kubernetes.io/${what}`, operator: "Exists", effect: "NoExecute" });
  return [{ ...of("not-ready"), tolerationSeconds: lostNodeSeconds }, of("unreachable")];
}

/**
 * What the container asks for and may use: the size that was chosen, of which as large a part is requested as of the one
 * in the settings; without a choice that.
 */
function resourcesOf({ size: chosen }: WorkspaceSpec, { cpu, memory }: Size): V1ResourceRequirements {
  if (chosen === undefined) {
    return {
      requests: { cpu: cpu.request, memory: memory.request },
      limits: { cpu: cpu.limit, memory: memory.limit },
    };
  }
  const part = ({ request, limit }: Size["cpu"], of: number) =>
    Math.ceil(of * Math.min(1, readAmount(request) / readAmount(limit)));
  return {
    requests: { cpu: `${part(cpu, chosen.cpuMilli)}m`, memory: mebibytes(part(memory, chosen.memoryBytes)) },
    limits: { cpu: `${chosen.cpuMilli}m`, memory: mebibytes(chosen.memoryBytes) },
  };
}

const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)}Mi`;

/** The image: what somebody has proposed by its digest, in the first size, or what the operator has named. */
function environmentOn({ environment, image }: WorkspaceSpec, { environments, sizes }: KubernetesSettings) {
  const named = environments[environment];
  if (image === undefined) return named;
  const size = named?.size ?? Object.keys(sizes)[0] ?? "";
  return { image, size, pull: "IfNotPresent" as const };
}

/**
 * What the settings say of the size that was chosen, which is named as it is offered, however capitalised; undefined of
 * one that they do not name, and of numbers of its own: those run as the environment does.
 */
function sizeAmong({ size }: WorkspaceSpec, { sizes }: KubernetesSettings): Size | undefined {
  const name = size?.name?.toLowerCase();
  return Object.entries(sizes).find(([key]) => key.toLowerCase() === name)?.[1];
}

/** Each start has a pod of another name: whoever drains a node asks by the name until nobody has it. */
export function podName({ id, generation }: Pick<WorkspaceSpec, "id" | "generation">): string {
  return `${id}-${generation}`;
}

/** The workspace's pod: no account of the cluster, no privilege, nothing writable but its volumes. */
export function workspacePod(spec: WorkspaceSpec, settings: KubernetesSettings, owner: V1OwnerReference): V1Pod {
  const environment = environmentOn(spec, settings);
  const size = sizeAmong(spec, settings) ?? settings.sizes[environment?.size ?? ""];
  if (environment === undefined || size === undefined) {
    const known = Object.keys(settings.environments).join(", ");
    throw new Error(
      `The environment ${spec.environment} has no image on this cluster (there is: ${known || "none"}). An admin names one in the Kubernetes settings.`,
    );
  }
  const layout = insideLayout;
  const ownAuthority = settings.certificateAuthority !== undefined;
  const variables = {
    ...jupyterVariables(spec, layout),
    SLUICE_CREDENTIAL_FILE: `${CREDENTIAL_FOLDER}/credential`,
    ...(ownAuthority ? { SSL_CERT_FILE: `${AUTHORITIES.folder}/${AUTHORITIES.file}` } : {}),
  };
  const meta = workspaceMeta(spec, settings, owner);
  const datasets = datasetVolumes(spec);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...meta, name: podName(spec), annotations: { [GENERATION]: String(spec.generation) } },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      hostname: "workspace",
      // A server that a person shut down stays down; one that crashed is started again.
      restartPolicy: "OnFailure",
      terminationGracePeriodSeconds: 10,
      nodeSelector: size.nodeSelector,
      tolerations: [...size.tolerations, ...silentNode(settings)],
      ...(size.priorityClass === undefined ? {} : { priorityClassName: size.priorityClass }),
      ...(size.runtimeClass === undefined ? {} : { runtimeClassName: size.runtimeClass }),
      imagePullSecrets: settings.imagePullSecrets.map((name) => ({ name })),
      securityContext: {
        runAsNonRoot: true,
        runAsUser: USER,
        runAsGroup: USER,
        fsGroup: USER,
        fsGroupChangePolicy: "OnRootMismatch",
        seccompProfile: { type: "RuntimeDefault" },
      },
      containers: [
        {
          name: "workspace",
          image: environment.image,
          imagePullPolicy: environment.pull,
          command: ["/bin/sh", "/opt/sluice/start.sh"],
          args: jupyterCommand(layout, { address: "0.0.0.0", port: JUPYTER_PORT }),
          env: Object.entries(variables).map(([name, value]) => ({ name, value })),
          envFrom: [{ secretRef: { name: `${spec.id}-variables` } }],
          ports: [{ name: "http", containerPort: JUPYTER_PORT, protocol: "TCP" }],
          resources: resourcesOf(spec, size),
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ["ALL"] },
            readOnlyRootFilesystem: true,
          },
          readinessProbe: {
            tcpSocket: { port: JUPYTER_PORT },
            periodSeconds: 1,
            timeoutSeconds: 1,
            failureThreshold: 3,
            successThreshold: 1,
          },
          volumeMounts: [
            { name: "home", mountPath: layout.home, subPath: "home" },
            { name: "home", mountPath: layout.packages, subPath: "packages" },
            { name: "run", mountPath: layout.run },
            { name: "tmp", mountPath: layout.tmp },
            { name: "credential", mountPath: CREDENTIAL_FOLDER, readOnly: true },
            ...(ownAuthority ? [{ name: "authorities", mountPath: AUTHORITIES.folder, readOnly: true }] : []),
            ...datasets.mounts,
          ],
        },
      ],
      volumes: [
        { name: "home", persistentVolumeClaim: { claimName: spec.id } },
        { name: "run", emptyDir: { medium: "Memory", sizeLimit: "64Mi" } },
        { name: "tmp", emptyDir: { sizeLimit: "4Gi" } },
        { name: "credential", secret: { secretName: `${spec.id}-credential`, defaultMode: 0o440 } },
        ...(ownAuthority ? [{ name: "authorities", configMap: { name: AUTHORITIES.configMap } }] : []),
        ...datasets.volumes,
      ],
    },
  };
}
