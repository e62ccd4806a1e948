/**
 * Workspaces as pods. What is wanted is applied under our field manager; what is there is watched, never asked for
 * again and again. Nothing lives only here: after a restart the cluster itself says what runs.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { KubernetesObject, V1NetworkPolicy, V1Node, V1Pod, V1Service } from "@kubernetes/client-node";
import { z } from "zod";
import type {
  BegunWorkspace,
  Belonging,
  Isolation,
  Launcher,
  LaunchReport,
  Observation,
  RunningWorkspace,
  Usage,
  WorkspaceSpec,
} from "#server/launchers/launcher.ts";
import { unmountable } from "#server/launchers/mountable.ts";
import { type Logger, logger } from "#server/log.ts";
import {
  ClusterClient,
  isForbidden,
  isNotFound,
  LONGEST_LOG,
  loadConfig,
  refusal,
  type Watched,
} from "./cluster-client.ts";
import { isAsPut } from "./drift.ts";
import { applyHome } from "./home.ts";
import {
  belongingsAmong,
  datasetObjects,
  generationOf,
  JUPYTER_PORT,
  NETWORK_POLICY,
  namespaceOf,
  networkPolicy,
  ownedBy,
  podName,
  SELECTOR,
  serviceBehind,
  serviceOf,
  TEAM_LABEL,
  WORKSPACE_LABEL,
  withAddress,
  workspaceOf,
  workspacePod,
  workspaceSecret,
} from "./objects.ts";
import { type Address, PlaceWatch } from "./place-news.ts";
import type { KubernetesSettings } from "./settings.ts";
import { PodLost, pause, podOf, StartingPods, untilItAnswers } from "./starting-pods.ts";
import { madeAt, type PodState, podState, quotaSentence, refusalSentence, restartedOf, stillThere } from "./states.ts";
import { type EgressPolicyOf, putTeam } from "./teams.ts";
import { missingDriver } from "./volume-news.ts";

/** A pod that is asked to end gets ten seconds, and its node a little more to say so. */
const STOP_MS = 45_000;

/** So often a pod that was to end is looked at, where the watch tells nothing of it. */
const LOOK_AGAIN_MS = 2_000;

const handleSchema = z.object({ launcher: z.literal("kubernetes"), generation: z.int(), namespace: z.string() });

/** Of what a pod printed before somebody followed it, so many lines are shown at most. */
const FOLLOWED_LINES = 500;

/** So long after they were put are a team's objects taken to be there as they should. */
const TEAM_MS = 10 * 60_000;

/** At least so long a start is waited for that another broker has begun, however long ago. */
const TAKEN_OVER_MS = 30_000;
/** For so long what somebody changed or deleted is put again. */
const REPAIR_MS = 10_000;
const REPAIR_AGAIN_MS = 250;
/** A broker that is being replaced may have other settings: the two are no faster than this in changing it back. */
const CHANGED_MS = 2_000;

type Watches = {
  pods: Watched<V1Pod>;
  services: Watched<V1Service>;
  policies: Watched<V1NetworkPolicy>;
  nodes: Watched<V1Node>;
};

export class KubernetesLauncher implements Launcher {
  readonly name = "kubernetes";
  /** A start that waits for a node, a volume or an image takes its place among them and no processor. */
  readonly startsAtOnce: number;
  readonly #settings: KubernetesSettings;
  readonly #egressPolicyOf: EgressPolicyOf;
  readonly #client: ClusterClient;
  /** The same, with refusals in words. */
  readonly #applying;
  readonly #log: Logger;
  readonly #places: PlaceWatch;
  readonly #starting: StartingPods;
  /** Workspaces that we are stopping: what goes with them was deleted by nobody else. */
  readonly #stopping = new Set<string>();
  /** Why pods went that somebody else deleted, and the pods. */
  readonly #lost = new Map<string, { pod: V1Pod; state: PodState }>();
  /** Services that somebody else changed or deleted, until the watch shows them again. */
  readonly #repaired = new Map<string, Promise<V1Service | undefined>>();
  /** When the objects of teams were put last. */
  readonly #teams = new Map<string, number>();
  #watches: Promise<Watches> | undefined;
  #closed = false;

  constructor(settings: KubernetesSettings, egressPolicyOf: EgressPolicyOf, log: Logger = logger("kubernetes")) {
    this.startsAtOnce = settings.startsAtOnce;
    this.#settings = settings;
    this.#egressPolicyOf = egressPolicyOf;
    this.#log = log;
    this.#client = new ClusterClient(loadConfig(settings.kubeconfig), log);
    const client = this.#client;
    this.#applying = {
      core: client.core,
      apply: this.#apply.bind(this),
      claim: client.claim.bind(client),
      list: client.list.bind(client),
      remove: client.remove.bind(client),
    };
    this.#places = new PlaceWatch(this.#client, settings, log);
    const watches = this.#watch.bind(this);
    this.#starting = new StartingPods({ client, settings, log, places: this.#places, watches });
  }

  async isolation(): Promise<Isolation> {
    return { isolated: true };
  }

  async ensure(spec: WorkspaceSpec, report: LaunchReport, signal: AbortSignal): Promise<RunningWorkspace> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(this.#settings.startSeconds * 1000)]);
    report.started("environment", `Preparing the namespace ${namespaceOf(this.#settings, spec.teamId)}`);
    const bringUp = async () => {
      try {
        return await this.#bringUp(spec, report, signal, limit);
      } catch (error) {
        // Perhaps one of the team's objects is missing.
        this.#teams.delete(spec.teamId);
        throw error;
      }
    };
    for (;;) {
      try {
        return await untilItAnswers(report, limit, bringUp);
      } catch (error) {
        if (!(error instanceof PodLost) || limit.aborted) throw error;
        report.log("pod", `${error.message} It is made again.`);
        await pause(limit, error);
      }
    }
  }

  async #bringUp(
    spec: WorkspaceSpec,
    report: LaunchReport,
    signal: AbortSignal,
    limit: AbortSignal,
  ): Promise<RunningWorkspace> {
    await this.#prepareTeam(spec.teamId, report);
    const claim = await applyHome(this.#applying, this.#settings, spec, (sentence) =>
      report.log("environment", sentence),
    );
    const owner = ownedBy(claim);
    // Made before anything is put into the cluster: an environment without an image ends here.
    const pod = workspacePod(spec, this.#settings, owner);
    for (const object of datasetObjects(spec, this.#settings, owner)) await this.#apply(object);
    for (const { name, source } of spec.datasets) {
      const reason = unmountable(this.name, { name, kind: source.kind });
      report.log("environment", reason === undefined ? `~/datasets/${name}` : `Without ~/datasets/${name}: ${reason}`);
    }
    const lacking = await missingDriver(this.#client.storage, spec.datasets);
    if (lacking !== undefined) report.log("environment", lacking);
    const waiting = { report, signal, limit, lacking };
    report.done("environment", `${spec.environment} is ${pod.spec?.containers[0]?.image}`);

    // Asked of the cluster itself: a pod that the watch does not tell of yet would share the home with the new one.
    const before = await this.#podsOf(spec.id);
    const goesOn = (one: V1Pod) =>
      one.metadata?.name === podName(spec) && generationOf(one) === spec.generation && podState(one).kind === "running";
    if (!before.every(goesOn)) await this.stop(spec.id);
    report.started("pod", "Making the pod");
    for (const secret of workspaceSecret(spec, this.#settings, owner)) await this.#apply(secret);
    const service = await this.#apply(serviceOf(spec, this.#settings, owner));
    const make = async () => ({ pod: await this.#apply(withAddress(pod, service)), service });
    await this.#starting.untilRuns(spec, waiting, make);
    return running(service, { generation: spec.generation, namespace: namespaceOf(this.#settings, spec.teamId) });
  }

  async awaitBegun(
    begun: BegunWorkspace,
    report: LaunchReport,
    signal: AbortSignal,
  ): Promise<RunningWorkspace | undefined> {
    const { pods, services } = await this.#watch();
    const left = madeAt(podOf(pods, begun.id)).getTime() + this.#settings.startSeconds * 1000 - Date.now();
    const limit = AbortSignal.any([signal, AbortSignal.timeout(Math.max(TAKEN_OVER_MS, left))]);
    report.started("pod", "Waiting for the pod that was made");
    const wait = async () => {
      const lacking = await missingDriver(this.#client.storage, begun.datasets);
      const service = await this.#starting.untilRuns(begun, { report, signal, limit, lacking }, async () => {
        const [pod, [service]] = [podOf(pods, begun.id), services.of(begun.id)];
        if (pod === undefined || service === undefined || generationOf(pod) !== begun.generation)
          throw new PodLost("The pod that was made has gone.");
        return { pod, service };
      });
      return running(service, { generation: begun.generation, namespace: namespaceOf(this.#settings, begun.teamId) });
    };
    try {
      return await untilItAnswers(report, limit, wait);
    } catch (error) {
      if (!(error instanceof PodLost) || limit.aborted) throw error;
      report.log("pod", `${error.message} It is made again.`);
      return undefined;
    }
  }

  async observe(id: string): Promise<Observation> {
    const { pods, services, nodes } = await this.#watch();
    const pod = podOf(pods, id);
    const lost = pod === undefined ? this.#lost.get(id) : { pod, state: podState(pod) };
    if (lost === undefined) return { state: "stopped" };
    if (lost.state.kind === "failed" || lost.state.kind === "ended") {
      const { sentence, placeLost } = lost.state;
      const returns = placeLost === true && (await this.#places.wayOut(lost.pod, nodes.all())).leads;
      return { state: "stopped", reason: sentence, ...(returns ? { placeLost: true } : {}) };
    }
    if (pod === undefined) return { state: "stopped" };
    // A container that is being started again is not lost yet, nor is one whose service is being made again.
    const [found] = services.of(id);
    // Or one that was deleted while nobody watched.
    const service = found ?? (await (this.#repaired.get(id) ?? this.#repairService(id, pod)));
    if (service === undefined)
      return {
        state: "stopped",
        reason: "The service of this workspace was deleted by somebody else than Sluice. Start brings it back.",
      };
    const { news, lost: lostWith } = await this.#places.of(pod, nodes.all(), addressOf(service));
    if (lostWith !== undefined) return { state: "stopped", reason: lostWith, placeLost: true };
    const restarted = restartedOf(pod);
    return {
      state: "running",
      ...(restarted === undefined ? {} : { restarted }),
      ...(news === undefined ? {} : { news }),
      ...(lost.state.kind === "waiting" ? { waits: true as const } : {}),
      ...running(service, { generation: generationOf(pod), namespace: pod.metadata?.namespace ?? "" }),
    };
  }

  async stop(id: string): Promise<void> {
    const watches = await this.#watch();
    this.#stopping.add(id);
    this.#lost.delete(id);
    this.#repaired.delete(id);
    try {
      for (const pod of await this.#podsOf(id)) await this.#client.remove(pod);
      await this.#untilGone(watches, id);
      for (const kind of ["Secret", "Service"]) {
        for (const object of await this.#ofWorkspace(kind, id)) await this.#client.remove(object);
      }
    } finally {
      this.#stopping.delete(id);
    }
  }

  /**
   * Settles when the cluster itself has no pod of the workspace any more, however late the watch is. A node that is off
   * says nothing of its pods' end: they are then deleted without its word, and it runs none of them when it is back.
   */
  async #untilGone({ pods, services, nodes }: Watches, id: string): Promise<void> {
    const late = AbortSignal.timeout(STOP_MS);
    for (;;) {
      // What changes while it is asked has it asked again.
      const changed = this.#changeOf(pods, id);
      try {
        const [left] = await this.#podsOf(id);
        if (left === undefined) return;
        const [service] = services.of(id);
        if (await this.#places.isOff(left, nodes.all(), service && addressOf(service))) {
          const { name, namespace } = left.metadata ?? {};
          this.#log.warn({ pod: name, namespace, node: left.spec?.nodeName }, "a pod of a lost node is deleted");
          await this.#client.remove(left, { atOnce: true });
        }
        if (late.aborted) throw new Error(stillThere(left, this.#settings));
        await Promise.race([changed.seen, sleep(LOOK_AGAIN_MS)]);
      } finally {
        changed.stop();
      }
    }
  }

  /** `seen` settles when the watch next tells of a pod of the workspace. */
  #changeOf(pods: Watched<V1Pod>, id: string): { seen: Promise<void>; stop: () => void } {
    const { promise: seen, resolve } = Promise.withResolvers<void>();
    const stop = pods.onChange((pod) => {
      if (this.#workspaceOf(pod) === id) resolve();
    });
    return { seen, stop };
  }

  async remove(id: string): Promise<void> {
    await this.stop(id);
    for (const claim of await this.#ofWorkspace("PersistentVolumeClaim", id)) {
      await this.#client.remove(claim, { foreground: true });
    }
    // A volume of the cluster cannot belong to something in a namespace.
    for (const volume of await this.#ofWorkspace("PersistentVolume", id)) await this.#client.remove(volume);
  }

  /** Nothing: a cluster measures by an extension that may be missing, so each workspace's own server is asked. */
  async usage(): Promise<Map<string, Usage>> {
    return new Map();
  }

  async logs(id: string, lines: number): Promise<string[]> {
    const { pods } = await this.#watch();
    const pod = podOf(pods, id);
    const [name, namespace] = [pod?.metadata?.name, pod?.metadata?.namespace];
    if (name === undefined || namespace === undefined) return [];
    const container = pod?.status?.containerStatuses?.[0];
    // What waits to be started again has its words in the run before.
    const previous = container?.state?.waiting !== undefined && container.lastState?.terminated !== undefined;
    const text = await this.#client.core
      .readNamespacedPodLog({
        name,
        namespace,
        container: "workspace",
        tailLines: lines,
        limitBytes: LONGEST_LOG,
        previous,
      })
      .catch((error: unknown) => {
        if (isNotFound(error) || refusal(error) !== undefined) return "";
        throw error;
      });
    return text.split("\n").filter((line) => line.trim() !== "");
  }

  async followLog(
    id: string,
    since: Date,
    onLine: (line: string, at: Date) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const pod = podOf((await this.#watch()).pods, id);
    const { name, namespace } = pod?.metadata ?? {};
    if (name === undefined || namespace === undefined) return;
    const hear = (line: string) => {
      const [printed = "", text = ""] = line.split(/ (.*)/s);
      const at = new Date(printed);
      // The cluster goes by whole seconds.
      if (at > since && text.trim() !== "") onLine(text, at);
    };
    const options = { sinceTime: since.toISOString(), tailLines: FOLLOWED_LINES, timestamps: true };
    const { stop, ended } = await this.#client.followLog({ namespace, name, container: "workspace" }, hear, options);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    await ended;
    signal.removeEventListener("abort", stop);
  }

  async endpoint(id: string): Promise<string | undefined> {
    const seen = await this.observe(id);
    return seen.state === "running" ? seen.endpoint : undefined;
  }

  async belongings(): Promise<Belonging[]> {
    const kinds = ["Pod", "Service", "Secret", "PersistentVolumeClaim", "PersistentVolume"];
    const found = await Promise.all(
      kinds.map(async (kind) => await this.#client.list("v1", kind, `${SELECTOR},${WORKSPACE_LABEL}`)),
    );
    return belongingsAmong(found.flat(), this.#settings);
  }

  /** Ends the watches; the workspaces stay. */
  async close(): Promise<void> {
    this.#closed = true;
    const watches = await this.#watches?.catch(() => undefined);
    if (watches === undefined) return;
    await Promise.all(Object.values(watches).map((one) => one.stop()));
  }

  #workspaceOf(object: KubernetesObject): string | undefined {
    return workspaceOf(object, this.#settings);
  }

  /** Begins the watches at first use, and again when the cluster could not be reached. */
  #watch(): Promise<Watches> {
    this.#watches ??= this.#beginWatches().catch((error: unknown) => {
      this.#watches = undefined;
      throw new Error("The Kubernetes cluster cannot be reached.", { cause: error });
    });
    return this.#watches;
  }

  async #beginWatches(): Promise<Watches> {
    const { core } = this.#client;
    const labelSelector = SELECTOR;
    const [pods, services, policies, nodes] = await Promise.all([
      this.#client.watch<V1Pod>({
        path: "/api/v1/pods",
        selector: SELECTOR,
        list: () => core.listPodForAllNamespaces({ labelSelector }),
        group: (pod) => this.#workspaceOf(pod),
      }),
      this.#client.watch<V1Service>({
        path: "/api/v1/services",
        selector: SELECTOR,
        list: () => core.listServiceForAllNamespaces({ labelSelector }),
        group: (service) => this.#workspaceOf(service),
      }),
      this.#client.watch<V1NetworkPolicy>({
        path: "/apis/networking.k8s.io/v1/networkpolicies",
        selector: SELECTOR,
        list: () => this.#client.networking.listNetworkPolicyForAllNamespaces({ labelSelector }),
      }),
      this.#client.watch<V1Node>({ path: "/api/v1/nodes", list: () => core.listNode() }),
    ]);
    pods.onChange((pod, deleted) => {
      if (deleted) this.#places.forget(pod);
      this.#rememberLoss(pod, deleted);
    });
    const lookAtService = (service: V1Service, deleted: boolean) => this.#lookAtService(service, deleted, pods);
    services.onChange(lookAtService);
    policies.onChange((policy, deleted) => void this.#lookAtPolicy(policy, deleted));
    // What was changed while nobody watched.
    for (const service of services.all()) lookAtService(service, false);
    for (const policy of policies.all()) void this.#lookAtPolicy(policy, false);
    return { pods, services, policies, nodes };
  }

  /** A team's namespace and its rules, which rarely change: put again when it was a while ago, or one was deleted. */
  async #prepareTeam(teamId: string, report: LaunchReport): Promise<void> {
    const before = this.#teams.get(teamId);
    if (before !== undefined && performance.now() - before < TEAM_MS) return;
    const began = performance.now();
    const lacking = await putTeam(this.#applying, this.#settings, teamId, await this.#egressPolicyOf(teamId));
    for (const sentence of lacking) report.log("environment", sentence);
    // What lacks is looked for again at the next launch.
    if (lacking.length === 0) this.#teams.set(teamId, began);
  }

  /** Keeps why a pod went that we did not stop, until it is there again: who asks may come after it. */
  #rememberLoss(pod: V1Pod, deleted: boolean): void {
    const id = this.#workspaceOf(pod);
    if (id === undefined || this.#stopping.has(id)) return;
    if (!deleted) {
      this.#lost.delete(id);
      return;
    }
    // One that is deleted by force has no time of deletion.
    const deletionTimestamp = pod.metadata?.deletionTimestamp ?? new Date();
    const state = podState({ ...pod, metadata: { ...pod.metadata, deletionTimestamp } });
    if (state.kind === "ended") this.#lost.set(id, { pod, state });
  }

  /** Somebody changed or deleted a running workspace's service: it comes back as it was, at the same address. */
  #lookAtService(service: V1Service, deleted: boolean, pods: Watched<V1Pod>): void {
    const id = this.#workspaceOf(service);
    if (id === undefined) return;
    this.#repaired.delete(id);
    const pod = podOf(pods, id);
    if (pod === undefined) return;
    const wanted = serviceBehind(pod, service.spec?.clusterIP);
    if (deleted || !isAsPut(wanted?.spec, service.spec)) void this.#repairService(id, pod, wanted);
  }

  /** Puts it again; whoever asks for it meanwhile waits for that. */
  async #repairService(id: string, pod: V1Pod, wanted = serviceBehind(pod)): Promise<V1Service | undefined> {
    if (wanted === undefined || this.#closed || this.#stopping.has(id) || podState(pod).kind !== "running") return;
    const repaired = this.#repair(wanted, async () => wanted);
    this.#repaired.set(id, repaired);
    return await repaired;
  }

  /** Without its policy, or with another one, a namespace's pods would talk to anybody. */
  async #lookAtPolicy(policy: V1NetworkPolicy, deleted: boolean): Promise<void> {
    const { labels, name, namespace } = policy.metadata ?? {};
    const teamId = labels?.[TEAM_LABEL];
    if (teamId === undefined || namespace !== namespaceOf(this.#settings, teamId) || this.#closed) return;
    if (name !== NETWORK_POLICY) return;
    const wanted = async () => networkPolicy(this.#settings, teamId, await this.#egressPolicyOf(teamId));
    // Where the database does not answer, the repair asks again.
    const now = deleted ? undefined : await wanted().catch(() => undefined);
    if (now !== undefined && isAsPut(now.spec, policy.spec)) return;
    // Its whole namespace may be gone.
    this.#teams.delete(teamId);
    await this.#repair({ ...policy, kind: "NetworkPolicy" }, wanted, deleted ? 0 : CHANGED_MS);
  }

  /** Again for a while where it is refused: the address of a service may not be free yet at the moment of its deletion. */
  async #repair<T extends V1Service | V1NetworkPolicy>(
    { kind, metadata }: T,
    wanted: () => Promise<T>,
    afterMs = 0,
  ): Promise<T | undefined> {
    if (afterMs > 0) await sleep(afterMs);
    const where = { kind, namespace: metadata?.namespace, name: metadata?.name };
    for (const until = performance.now() + REPAIR_MS; ; await sleep(REPAIR_AGAIN_MS)) {
      if (this.#closed) return undefined;
      try {
        const made = await this.#client.apply(await wanted());
        this.#log.warn(where, "an object that somebody changed or deleted was put again");
        return made;
      } catch (error) {
        // A namespace that is being deleted takes nothing new, and needs nothing.
        if (!isForbidden(error) && !isNotFound(error) && performance.now() < until) continue;
        this.#log.warn({ err: error, ...where }, "an object that somebody changed or deleted could not be put again");
        return undefined;
      }
    }
  }

  async #apply<T extends Parameters<ClusterClient["apply"]>[0]>(object: T): Promise<T> {
    try {
      return await this.#client.apply(object);
    } catch (error) {
      const said = refusal(error);
      if (said === undefined) throw error;
      throw new Error(quotaSentence(said) ?? refusalSentence(said), { cause: error });
    }
  }

  async #ofWorkspace<T extends KubernetesObject>(kind: string, id: string): Promise<T[]> {
    const labelled = await this.#client.list<T>("v1", kind, `${SELECTOR},${WORKSPACE_LABEL}=${id}`);
    return labelled.filter((object) => this.#workspaceOf(object) === id);
  }

  async #podsOf(id: string): Promise<V1Pod[]> {
    return await this.#ofWorkspace<V1Pod>("Pod", id);
  }
}

function addressOf(service: V1Service): Address {
  return { host: service.spec?.clusterIP ?? "", port: JUPYTER_PORT };
}

function running(service: V1Service, place: { generation: number; namespace: string }): RunningWorkspace {
  const { host, port } = addressOf(service);
  return {
    endpoint: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    handle: handleSchema.parse({ launcher: "kubernetes", ...place }),
  };
}
