/**
 * A pod that borrows a GPU, made from the one that somebody applied. Before its own containers, one after another:
 * ours copies the client libraries into a volume, a check runs in each of the pod's images, `sluice pod wait` asks for
 * the lease and waits in the queue, and `sluice pod hold` stays beside the pod's containers for as long as they run and
 * gives the GPU back after them. Pure.
 */
import type { V1Container, V1EnvVar, V1Pod, V1PodSpec, V1Volume, V1VolumeMount } from "@kubernetes/client-node";
import type { PodSettings } from "../settings.ts";
import { CONTAINERS_ANNOTATION, GPU_LABEL, type Wish } from "./wish.ts";

/** Where the volume with libraries and socket lies in every container. */
export const FOLDER = "/sluice";
const PREFIX = "sluice-";
export const CHECK_PREFIX = `${PREFIX}check-`;
export const WAIT = `${PREFIX}wait`;
const HOLD = `${PREFIX}gpu`;
/** Who vouches for the broker travels in an annotation: a ConfigMap would have to be in every namespace. */
const AUTHORITY_ANNOTATION = "sluice.dev/broker-authority";
/** The cluster makes none that live shorter. */
const TOKEN_SECONDS = 600;
/** After a restart of its container it may have to wait in the queue again. */
const START_SECONDS = 120;
const PRELOADED = ["libcuda.so.1", "libnvidia-ml.so.1", "libcudart.so.13", "libcudart.so.12"];

export type Surroundings = {
  settings: PodSettings;
  brokerUrl: string;
  /** PEM; undefined where the world knows the broker's certificate. */
  authority: string | undefined;
};

/** Whether a pod has been through here already. */
export const isBorrowing = (pod: V1Pod): boolean =>
  pod.spec?.initContainers?.some(({ name }) => name === HOLD) ?? false;

/** The containers that get the GPU: those that the annotation names, else all; undefined when it names one that is not there. */
function chosen(pod: V1Pod): string[] | undefined {
  const all = pod.spec?.containers.map(({ name }) => name) ?? [];
  const named = pod.metadata?.annotations?.[CONTAINERS_ANNOTATION];
  if (named === undefined) return all;
  const names = named.split(",").map((name) => name.trim());
  return names.every((name) => all.includes(name)) ? names : undefined;
}

/** Why a pod cannot borrow whatever it asks for; undefined when it can. */
export function obstacle(pod: V1Pod): string | undefined {
  if (chosen(pod) === undefined)
    return `${CONTAINERS_ANNOTATION} names a container that the pod does not have: ${pod.metadata?.annotations?.[CONTAINERS_ANNOTATION]}.`;
  if (pod.spec?.os?.name === "windows") return "Sluice's client libraries are for Linux.";
  return undefined;
}

/** The same pod, borrowing. */
export function borrowingPod(pod: V1Pod, wish: Wish, around: Surroundings): V1Pod {
  if (pod.spec === undefined) return pod;
  const names = chosen(pod) ?? [];
  const users = pod.spec.containers.filter(({ name }) => names.includes(name));
  const annotations = { ...pod.metadata?.annotations };
  if (around.authority !== undefined) annotations[AUTHORITY_ANNOTATION] = around.authority;
  return {
    ...pod,
    // By this label whoever follows borrowing pods selects them.
    metadata: { ...pod.metadata, annotations, labels: { [GPU_LABEL]: "", ...pod.metadata?.labels } },
    spec: {
      ...pod.spec,
      ...pullSecrets(pod.spec, around),
      volumes: [...(pod.spec.volumes ?? []), ...volumes(around)],
      initContainers: [
        libraries(around),
        ...users.map(check),
        asking("wait", WAIT, wish, around),
        hold(wish, around),
        ...(pod.spec.initContainers ?? []),
      ],
      containers: pod.spec.containers.map((one) => (names.includes(one.name) ? using(one, wish, around) : one)),
    },
  };
}

/** What the client's image is pulled with, beside the pod's own. */
function pullSecrets({ imagePullSecrets: own = [] }: V1PodSpec, { settings }: Surroundings) {
  const more = settings.imagePullSecrets.filter((name) => !own.some((one) => one.name === name));
  return more.length === 0 ? {} : { imagePullSecrets: [...own, ...more.map((name) => ({ name }))] };
}

function volumes({ settings, authority }: Surroundings): V1Volume[] {
  const path = `metadata.annotations['${AUTHORITY_ANNOTATION}']`;
  const told = { downwardAPI: { items: [{ path: "ca.crt", fieldRef: { fieldPath: path } }] } };
  const token = { audience: settings.audience, expirationSeconds: TOKEN_SECONDS, path: "token" };
  return [
    { name: "sluice", emptyDir: {} },
    { name: "sluice-private", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
    {
      name: "sluice-credential",
      projected: { sources: [{ serviceAccountToken: token }, ...(authority === undefined ? [] : [told])] },
    },
  ];
}

/** What every container of ours is: no privilege, little of everything. */
function ours(name: string, { settings }: Surroundings): V1Container {
  return {
    name,
    image: settings.image,
    imagePullPolicy: settings.pull,
    resources: { requests: { cpu: "20m", memory: "64Mi" }, limits: { cpu: "1", memory: "256Mi" } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      runAsUser: 65532,
      runAsGroup: 65532,
      capabilities: { drop: ["ALL"] },
      seccompProfile: { type: "RuntimeDefault" },
    },
    volumeMounts: [{ name: "sluice", mountPath: FOLDER }],
  };
}

function libraries(around: Surroundings): V1Container {
  return { ...ours(`${PREFIX}libraries`, around), command: ["/bin/sh", "/opt/sluice/libraries.sh", FOLDER] };
}

/**
 * Runs in the container's own image, by a loader and a C library that we bring: only there it can be seen whether the
 * image has what our libraries need, before a program fails on it without a word.
 */
function check(container: V1Container, index: number): V1Container {
  return {
    name: `${CHECK_PREFIX}${index}`,
    ...(container.image === undefined ? {} : { image: container.image }),
    ...(container.imagePullPolicy === undefined ? {} : { imagePullPolicy: container.imagePullPolicy }),
    command: [`${FOLDER}/glibc/loader`, "--library-path", `${FOLDER}/glibc`, `${FOLDER}/bin/sluice`, "pod", "check"],
    args: [container.name],
    resources: { requests: { cpu: "20m", memory: "64Mi" }, limits: { cpu: "1", memory: "256Mi" } },
    ...(container.securityContext === undefined ? {} : { securityContext: container.securityContext }),
    volumeMounts: [{ name: "sluice", mountPath: FOLDER, readOnly: true }],
  };
}

/** `sluice pod wait` or `hold`: the only containers that see the credential. */
function asking(word: "wait" | "hold", name: string, wish: Wish, around: Surroundings): V1Container {
  const credential = "/var/run/secrets/sluice";
  const container = ours(name, around);
  return {
    ...container,
    command: ["/opt/sluice/bin/sluice", "pod", word],
    args: [
      `--gpu=${wish.amount}`,
      `--type=${wish.gpuType}`,
      `--team=${wish.team}`,
      `--wait=${wish.waitSeconds}s`,
      `--token=${credential}/token`,
    ],
    env: [
      { name: "SLUICE_BROKER_URL", value: around.brokerUrl },
      { name: "SLUICE_GPU_TYPE", value: wish.gpuType },
      { name: "SLUICE_CREDENTIAL_FILE", value: "/run/sluice-private/credential" },
      { name: "SLUICE_RUNTIME_DIR", value: `${FOLDER}/run` },
      ...(around.authority === undefined ? [] : [{ name: "SSL_CERT_FILE", value: `${credential}/ca.crt` }]),
      { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    ],
    terminationMessagePolicy: "File",
    volumeMounts: [
      ...(container.volumeMounts ?? []),
      { name: "sluice-private", mountPath: "/run/sluice-private" },
      { name: "sluice-credential", mountPath: credential, readOnly: true },
    ],
  };
}

/** A container that starts before the pod's own, runs beside them, and is ended after them. */
function hold(wish: Wish, around: Surroundings): V1Container {
  return {
    ...asking("hold", HOLD, wish, around),
    restartPolicy: "Always",
    startupProbe: {
      exec: { command: ["test", "-S", `${FOLDER}/run/gpu`] },
      periodSeconds: 1,
      failureThreshold: wish.waitSeconds + START_SECONDS,
    },
  };
}

/** A container of the pod's, whose CUDA programs find our libraries and, through the socket, the lease. */
function using(container: V1Container, wish: Wish, around: Surroundings): V1Container {
  const lib = `${FOLDER}/lib`;
  const given = container.env ?? [];
  const before = (name: string, separator: string, value: string): V1EnvVar => {
    const old = given.find((one) => one.name === name)?.value;
    return { name, value: old === undefined || old === "" ? value : `${value}${separator}${old}` };
  };
  const ours: V1EnvVar[] = [
    { name: "SLUICE_BROKER_URL", value: around.brokerUrl },
    { name: "SLUICE_GPU_TYPE", value: wish.gpuType },
    { name: "SLUICE_OWNER_SOCKET", value: `${FOLDER}/run/gpu` },
    { name: "SLUICE_RUNTIME_DIR", value: `${FOLDER}/run` },
    { name: "SLUICE_LIBRARY_DIR", value: lib },
    before("LD_LIBRARY_PATH", ":", lib),
    before("LD_PRELOAD", " ", PRELOADED.map((name) => `${lib}/${name}`).join(" ")),
  ];
  const names = new Set(ours.map(({ name }) => name));
  const mount: V1VolumeMount = { name: "sluice", mountPath: FOLDER, readOnly: true };
  return {
    ...container,
    env: [...given.filter(({ name }) => !names.has(name)), ...ours],
    volumeMounts: [...(container.volumeMounts ?? []), mount],
  };
}
