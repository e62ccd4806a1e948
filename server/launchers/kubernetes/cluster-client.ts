/** The cluster's API as the launcher uses it: apply, delete, and watches that mend themselves. */

import { createInterface } from "node:readline";
import { PassThrough, type Readable } from "node:stream";
import {
  ApiException,
  AppsV1Api,
  type ConfigurationOptions,
  CoreV1Api,
  type KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  KubernetesObjectApi,
  ListWatch,
  Log,
  type LogOptions,
  NetworkingV1Api,
  Observable,
  type ObservableMiddleware,
  PatchStrategy,
  StorageV1Api,
  type V1PersistentVolumeClaim,
  Watch,
} from "@kubernetes/client-node";
import type { Logger } from "#server/log.ts";
import { ClusterConfig } from "./cluster-config.ts";
import { FIELD_MANAGER } from "./objects.ts";

/** Maximum bytes of a container's log, read at once or followed, and of one line without an end. */
export const LONGEST_LOG = 1024 * 1024;
/** So long after a watch broke it is begun again. */
const RESUME_MS = 1_000;

export class ClusterClient {
  readonly core: CoreV1Api;
  readonly networking: NetworkingV1Api;
  readonly apps: AppsV1Api;
  readonly storage: StorageV1Api;
  readonly #config: KubeConfig;
  readonly #objects: KubernetesObjectApi;
  readonly #log: Logger;

  constructor(config: KubeConfig, log: Logger) {
    this.#config = config;
    this.#objects = KubernetesObjectApi.makeApiClient(config);
    this.core = config.makeApiClient(CoreV1Api);
    this.networking = config.makeApiClient(NetworkingV1Api);
    this.apps = config.makeApiClient(AppsV1Api);
    this.storage = config.makeApiClient(StorageV1Api);
    this.#log = log;
  }

  /** Server-side apply: fields that we set are ours, whoever set them before. */
  async apply<T extends KubernetesObject>(object: T): Promise<T> {
    return await this.#objects.patch(object, undefined, undefined, FIELD_MANAGER, true, PatchStrategy.ServerSideApply);
  }

  /** Deletes with all dependents; what is not there is no error. `atOnce`: waits for no node to say that a pod has ended. */
  async remove(object: KubernetesObject, options: { foreground?: boolean; atOnce?: boolean } = {}): Promise<void> {
    const propagation = options.foreground ? "Foreground" : "Background";
    const grace = options.atOnce ? 0 : undefined;
    try {
      await this.#objects.delete(object, undefined, undefined, grace, undefined, propagation);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async list<T extends KubernetesObject>(
    apiVersion: string,
    kind: string,
    selector: string,
    namespace?: string,
  ): Promise<T[]> {
    const { items } = await this.#objects.list<T>(
      apiVersion,
      kind,
      namespace,
      undefined,
      undefined,
      undefined,
      undefined,
      selector,
    );
    // The items of a list do not name their kind.
    return items.map((item) => ({ ...item, apiVersion, kind }));
  }

  /** Keeps a copy of what `path` lists, and says when it changes. Settles when the first list is there. */
  async watch<T extends KubernetesObject>(options: WatchOptions<T>): Promise<Watched<T>> {
    const { path, list, selector, fields, group } = options;
    const informer = new ListWatch<T>(path, new Watch(this.#config), list, false, selector, fields);
    let stopped = false;
    let timer: NodeJS.Timeout | undefined;
    const listeners = new Set<(object: T, gone: boolean) => void>();
    const groups = new Map<string, Map<string, T>>();
    const tell = (gone: boolean) => (object: T) => {
      // Who set which field is a third of an object, and nobody here reads it.
      delete object.metadata?.managedFields;
      const key = group?.(object);
      if (key !== undefined) putInto(groups, key, object, gone);
      for (const listener of listeners) listener(object, gone);
    };
    informer.on("add", tell(false));
    informer.on("update", tell(false));
    informer.on("delete", tell(true));
    const { promise: failed, reject: fail } = Promise.withResolvers<never>();
    failed.catch(() => undefined);
    informer.on("error", (error: unknown) => {
      if (stopped) return;
      fail(error);
      this.#log.warn({ err: error, path }, "a watch on the cluster broke; it is begun again");
      timer = setTimeout(() => void informer.start().catch(() => undefined), RESUME_MS);
    });
    const stop = async () => {
      stopped = true;
      clearTimeout(timer);
      await informer.stop();
    };
    try {
      await Promise.race([informer.start(), failed]);
    } catch (error) {
      await stop();
      throw error;
    }
    return {
      all: () => informer.list(),
      of: (key) => [...(groups.get(key)?.values() ?? [])],
      onChange: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      stop,
    };
  }

  /** Hands over what a container prints, line by line, until it ends or is no longer wanted: by what this gives. */
  async followLog(
    { namespace, name, container }: { namespace: string; name: string; container: string },
    onLine: (line: string) => void,
    options: Pick<LogOptions, "sinceTime" | "tailLines" | "timestamps"> = {},
  ): Promise<{ stop: () => void; ended: Promise<void> }> {
    const lines = new PassThrough();
    // A log that breaks off has ended; without a listener its error would end the process.
    lines.on("pipe", (source: Readable) => source.on("error", () => lines.end()));
    const reader = createInterface({ input: lines }).on("line", onLine);
    const ended = new Promise<void>((resolve) => reader.once("close", resolve));
    const following = await new Log(this.#config).log(namespace, name, container, lines, {
      follow: true,
      limitBytes: LONGEST_LOG,
      ...options,
    });
    return { stop: () => following.abort(), ended };
  }

  /** The cluster's id of a pod, asked now; undefined when there is none of that name. */
  async podUid(namespace: string, name: string): Promise<string | undefined> {
    return (await orNothing(this.core.readNamespacedPod({ namespace, name })))?.metadata?.uid;
  }

  /** A volume's claim, asked now; undefined when there is none of that name. */
  async claim(namespace: string, name: string): Promise<V1PersistentVolumeClaim | undefined> {
    return await orNothing(this.core.readNamespacedPersistentVolumeClaim({ namespace, name }));
  }
}

async function orNothing<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

export type WatchOptions<T extends KubernetesObject> = {
  path: string;
  list: () => Promise<KubernetesListObject<T>>;
  /** Labels and fields that select. */
  selector?: string;
  fields?: string;
  /** What an object is found by, beside all; a change never moves it. */
  group?: (object: T) => string | undefined;
};

export type Watched<T> = {
  all: () => readonly T[];
  /** Those of a group. */
  of: (group: string) => readonly T[];
  /** Calls back at each change; `gone`: it was deleted. Gives what ends that. */
  onChange: (listener: (object: T, gone: boolean) => void) => () => void;
  stop: () => Promise<void>;
};

function putInto<T extends KubernetesObject>(
  groups: Map<string, Map<string, T>>,
  key: string,
  object: T,
  gone: boolean,
): void {
  const { namespace = "", name = "" } = object.metadata ?? {};
  const members = groups.get(key) ?? new Map<string, T>();
  if (gone) members.delete(`${namespace}/${name}`);
  else members.set(`${namespace}/${name}`, object);
  if (members.size === 0) groups.delete(key);
  else groups.set(key, members);
}

/** Options of a request, with which it ends, also while it is answered. */
export function endingWith(signal: AbortSignal): ConfigurationOptions {
  const middleware: ObservableMiddleware = {
    pre: (request) => {
      request.setSignal(signal);
      return new Observable(Promise.resolve(request));
    },
    post: (response) => new Observable(Promise.resolve(response)),
  };
  return { middleware: [middleware], middlewareMergeStrategy: "append" };
}

/** The cluster of a file, or the one that this process runs in. */
export function loadConfig(file: string | undefined): KubeConfig {
  const config = new ClusterConfig();
  if (file !== undefined) config.loadFromFile(file);
  else if (process.env.KUBERNETES_SERVICE_HOST !== undefined) config.loadFromCluster();
  else throw new Error('No cluster: this process runs in none, and the Kubernetes settings name no "kubeconfig".');
  return config;
}

export function isNotFound(error: unknown): boolean {
  return error instanceof ApiException && error.code === 404;
}

export function isForbidden(error: unknown): boolean {
  return error instanceof ApiException && error.code === 403;
}

/** Nobody answered, or the API server cannot just now: to ask again may help. */
export function isUnreachable(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof ApiException) return at.code === 429 || at.code >= 500;
    if ("code" in at && typeof at.code === "string" && /^(E[A-Z]+|UND_ERR_\w+)$/.test(at.code)) return true;
  }
  return false;
}

/** What was to be made is there already. */
export function isConflict(error: unknown): boolean {
  return error instanceof ApiException && error.code === 409;
}

/** What the API server said when it refused. */
export function refusal(error: unknown): string | undefined {
  if (!(error instanceof ApiException)) return error instanceof Error ? refusal(error.cause) : undefined;
  if (error.code < 400 || error.code >= 500) return undefined;
  const body: unknown = typeof error.body === "string" ? parseJson(error.body) : error.body;
  if (typeof body === "object" && body !== null && "message" in body && typeof body.message === "string")
    return body.message;
  return error.message;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { message: text };
  }
}
