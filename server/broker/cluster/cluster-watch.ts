/**
 * What the broker follows in its cluster, by watches: pods that borrow (their end gives back what they hold, and what
 * becomes of their request is told on them as an event), nodes with GPU servers (a cordon drains them, in the end with notice to who holds a GPU there,
 * and so does the end of the node), and the gpuds of its chart (an older one is drained and replaced, node by node). Teams'
 * namespaces get what its settings say, and those of borrowing pods the secrets of the client's registry. Each broker watches, the one that leads acts; what happened while
 * nobody did is made up for by the next one that leads, and once a minute.
 */
import type { KubernetesObject, V1ControllerRevision, V1Node, V1Pod } from "@kubernetes/client-node";
import { holdLeadership } from "#server/broker/reconciler/leadership.ts";
import { type Context, systemContext } from "#server/context.ts";
import type { OpenDatabase } from "#server/db/client.ts";
import {
  ClusterClient,
  isConflict,
  isNotFound,
  loadConfig,
  type Watched,
  type WatchOptions,
} from "#server/launchers/kubernetes/cluster-client.ts";
import { answers } from "#server/launchers/kubernetes/eligible.ts";
import { hasEnded, podEvent, refusalOf } from "#server/launchers/kubernetes/pods/pod-states.ts";
import { GPU_LABEL } from "#server/launchers/kubernetes/pods/wish.ts";
import { copyPullSecrets, podCopies } from "#server/launchers/kubernetes/pull-secrets.ts";
import type { KubernetesSettings } from "#server/launchers/kubernetes/settings.ts";
import { putNetworkPolicy, putTeams } from "#server/launchers/kubernetes/teams.ts";
import type { Live } from "#server/live.ts";
import type { Logger } from "#server/log.ts";
import { followNode } from "#server/services/gpu-server/follow-node.ts";
import { forgetParked } from "#server/services/gpu-server/forget-parked.ts";
import { isFree } from "#server/services/gpu-server/is-free.ts";
import { listNodes } from "#server/services/gpu-server/list-nodes.ts";
import { vacate } from "#server/services/gpu-server/vacate.ts";
import { end } from "#server/services/pod/end.ts";
import { listOpen } from "#server/services/pod/list-open.ts";
import { news } from "#server/services/pod/news.ts";
import { egressPolicyOf } from "#server/services/team/egress-policy-of.ts";
import { nextUpdate } from "./gpud-update.ts";

const SWEEP_MS = 60_000;
/** So often a broker asks whether it leads now. */
const TURN_MS = 5_000;
const RETRY_MS = 5_000;

type Options = { database: OpenDatabase; live: Live; log: Logger; settings: KubernetesSettings };

/** Begins to follow; goes on trying while the cluster does not answer. */
export function startClusterWatch(options: Options): { stop: () => Promise<void> } {
  const watch = new ClusterWatch(options);
  void watch.start();
  return { stop: async () => await watch.stop() };
}

class ClusterWatch {
  readonly #options: Options;
  readonly #client: ClusterClient;
  readonly #leadership;
  readonly #stops: (() => unknown)[] = [];
  #pods: Watched<V1Pod> | undefined;
  #nodes: Watched<V1Node> | undefined;
  #revisions: Watched<V1ControllerRevision> | undefined;
  #gpuds: { daemonSet: string; pods: Watched<V1Pod>; revisions: Watched<V1ControllerRevision> } | undefined;
  /** The node whose gpud is being replaced. */
  #updating: string | undefined;
  /** Nodes that stopped answering while theirs was under way. */
  readonly #begun = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** When this broker looked at everything last, as the one that leads. */
  #swept = Number.NEGATIVE_INFINITY;
  #stopped = false;
  /** Whether this broker's settings have yet to reach the teams that there are. */
  #putTeams = true;
  /** Teams whose settings changed since their NetworkPolicy was put. */
  readonly #changedTeams = new Set<string>();
  /** When the secrets of the client's registry were brought to a namespace last. */
  readonly #pullSecrets = new Map<string, number>();
  /** One thing after another: an event may not come before the one that it follows. */
  #work: Promise<void> = Promise.resolve();

  constructor(options: Options) {
    this.#options = options;
    this.#client = new ClusterClient(loadConfig(options.settings.kubeconfig), options.log);
    this.#leadership = holdLeadership(options.database.sql, options.log, "cluster watch");
  }

  async start(): Promise<void> {
    try {
      if (this.#options.settings.pods !== undefined) await this.#followPods();
      if (this.#options.settings.gpuServers !== undefined) await this.#followNodes();
      await this.#followGpuds();
      this.#followTeams();
    } catch (error) {
      this.#options.log.warn({ err: error }, "the cluster cannot be followed; tried again soon");
      if (!this.#stopped) this.#timer = setTimeout(() => void this.start(), RETRY_MS);
      return;
    }
    if (this.#stopped) return await this.stop();
    const turn = () => this.#do((ctx) => this.#sweepWhenDue(ctx));
    this.#timer = setInterval(turn, TURN_MS);
    turn();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    for (const stop of this.#stops.splice(0)) await stop();
    await this.#work;
    await this.#leadership.release().catch(() => undefined);
  }

  /** A watch that ends with this. */
  async #begin<T extends KubernetesObject>(options: WatchOptions<T>): Promise<Watched<T>> {
    const watched = await this.#client.watch<T>(options);
    this.#stops.push(watched.stop);
    return watched;
  }

  async #followPods(): Promise<void> {
    if (this.#pods !== undefined) return;
    const pods = await this.#begin<V1Pod>({
      path: "/api/v1/pods",
      selector: GPU_LABEL,
      list: () => this.#client.core.listPodForAllNamespaces({ labelSelector: GPU_LABEL }),
    });
    this.#pods = pods;
    pods.onChange((pod, gone) => this.#do((ctx) => this.#lookAt(ctx, pod, gone)));
    // Every new request is in the audit, every decision about it a change of a lease.
    const silence = this.#options.live.subscribe(["audit", "lease"], ({ id }) => {
      if (id?.startsWith("req-")) this.#do((ctx) => this.#tell(ctx, id));
    });
    this.#stops.push(silence);
  }

  async #followNodes(): Promise<void> {
    if (this.#nodes !== undefined) return;
    const nodes = await this.#begin<V1Node>({
      path: "/api/v1/nodes",
      list: () => this.#client.core.listNode(),
    });
    this.#nodes = nodes;
    nodes.onChange((node, gone) => {
      if (!gone) this.#do((ctx) => this.#follow(ctx, node));
      else this.#do((ctx) => this.#followDeleted(ctx, node.metadata?.name ?? ""));
    });
  }

  async #followGpuds(): Promise<void> {
    const { namespace, daemonSet } = this.#options.settings.gpuServers ?? {};
    if (this.#gpuds !== undefined || namespace === undefined || daemonSet === undefined) return;
    // Kept when what follows fails: a start that is tried again goes on from there.
    this.#revisions ??= await this.#begin<V1ControllerRevision>({
      path: `/apis/apps/v1/namespaces/${namespace}/controllerrevisions`,
      list: () => this.#client.apps.listNamespacedControllerRevision({ namespace }),
    });
    const revisions = this.#revisions;
    const labelSelector = "app.kubernetes.io/component=gpud";
    const pods = await this.#begin<V1Pod>({
      path: `/api/v1/namespaces/${namespace}/pods`,
      selector: labelSelector,
      list: () => this.#client.core.listNamespacedPod({ namespace, labelSelector }),
    });
    this.#gpuds = { daemonSet, pods, revisions };
    for (const watched of [pods, revisions]) watched.onChange(() => this.#do((ctx) => this.#update(ctx)));
    // When the last lease of a server that is to be replaced ends.
    const silence = this.#options.live.subscribe(["lease"], () => {
      if (this.#updating !== undefined) this.#do((ctx) => this.#update(ctx));
    });
    this.#stops.push(silence);
  }

  /** A change of a team's settings arrives as a change of the pool with the team's id. */
  #followTeams(): void {
    const silence = this.#options.live.subscribe(["pool"], ({ id }) => {
      // After a loss of the connection any team may have changed.
      if (id === null) this.#putTeams = true;
      if (!id?.startsWith("team-")) return;
      this.#changedTeams.add(id);
      this.#do((ctx) => this.#putChangedTeams(ctx));
    });
    this.#stops.push(silence);
  }

  /** A team that cannot be put stays for the next sweep. */
  async #putChangedTeams({ db }: Context): Promise<void> {
    for (const teamId of [...this.#changedTeams]) {
      this.#changedTeams.delete(teamId);
      try {
        await putNetworkPolicy(this.#client, this.#options.settings, teamId, (id) => egressPolicyOf(db, id));
      } catch (error) {
        this.#changedTeams.add(teamId);
        throw error;
      }
    }
  }

  /** Does it after what is under way, if this broker leads. */
  #do(what: (ctx: Context) => Promise<void>): void {
    this.#work = this.#work.then(async () => {
      try {
        if (!this.#stopped && (await this.#leadership.isLeader())) await what(systemContext(this.#options.database.db));
      } catch (error) {
        this.#options.log.warn({ err: error }, "something of the cluster could not be followed");
      }
    });
  }

  async #sweepWhenDue(ctx: Context): Promise<void> {
    if (performance.now() - this.#swept < SWEEP_MS) return;
    this.#swept = performance.now();
    await this.#sweep(ctx);
  }

  async #sweep(ctx: Context): Promise<void> {
    const pods = new Map(this.#pods?.all().map((pod) => [pod.metadata?.uid, pod]));
    if (this.#pods !== undefined) {
      for (const { podUid, namespace, name } of await listOpen(ctx)) {
        const pod = pods.get(podUid);
        // Our copy may be older than the pod: what it does not have is asked for.
        const ended = pod === undefined ? (await this.#client.podUid(namespace, name)) !== podUid : hasEnded(pod);
        if (ended) await end(ctx, { podUid });
      }
    }
    // First, so that a broker that has just come to lead opens no node that is being emptied.
    await this.#update(ctx);
    for (const node of this.#nodes?.all() ?? []) await this.#follow(ctx, node);
    // Those that were deleted while nobody looked.
    if (this.#nodes !== undefined) for (const name of await listNodes(ctx)) await this.#followDeleted(ctx, name);
    if (this.#putTeams) await this.#putAllTeams(ctx);
    await this.#putChangedTeams(ctx);
  }

  async #putAllTeams({ db }: Context): Promise<void> {
    const { settings, log } = this.#options;
    // Reset before the work, so that a change during the work asks for the next sweep.
    this.#putTeams = false;
    try {
      await putTeams(this.#client, settings, (id) => egressPolicyOf(db, id), log);
      for (const name of Object.keys(settings.pods?.namespaces ?? {})) await this.#putPullSecrets(name);
    } catch (error) {
      this.#putTeams = true;
      throw error;
    }
  }

  /** Replaces the next gpud that is older than its DaemonSet, once nobody holds anything there. */
  async #update(ctx: Context): Promise<void> {
    if (this.#gpuds === undefined) return;
    const { daemonSet, pods, revisions } = this.#gpuds;
    const nodes = new Set(this.#nodes?.all().flatMap((node) => (answers(node) ? (node.metadata?.name ?? []) : [])));
    const next = nextUpdate(daemonSet, pods.all(), revisions.all(), { nodes, updating: this.#updating });
    if (next === "wait") return;
    const changed = [this.#updating, next?.nodeName];
    // A node that falls silent meanwhile stays closed and keeps its time: it goes on where it was when it is back.
    if (this.#updating !== undefined && !nodes.has(this.#updating)) this.#begun.add(this.#updating);
    if (next === undefined) {
      changed.push(...this.#begun);
      for (const name of this.#begun) if (nodes.has(name)) this.#begun.delete(name);
    } else this.#begun.delete(next.nodeName);
    this.#updating = next?.nodeName;
    for (const node of this.#nodes?.all() ?? [])
      if (changed.includes(node.metadata?.name)) await this.#follow(ctx, node);
    if (next === undefined) return;
    await this.#vacate(ctx, next.nodeName, this.#options.settings.gpuServers?.updateAfterSeconds ?? 0);
    if (!(await isFree(ctx, next))) return;
    await this.#client.remove({ apiVersion: "v1", kind: "Pod", metadata: next.pod.metadata });
    await forgetParked(ctx, next);
    this.#options.log.info({ nodeName: next.nodeName }, "a gpud is replaced");
  }

  /** Whoever holds a GPU of a node that has been closed for so long is told that it ends. */
  async #vacate(ctx: Context, nodeName: string, afterSeconds: number): Promise<void> {
    const waits = { afterMs: afterSeconds * 1000, noticeMs: this.#options.settings.moveSeconds * 1000 };
    const told = await vacate(ctx, { nodeName, ...waits });
    if (told > 0) this.#options.log.info({ nodeName, told }, "leases end with their GPU server");
  }

  async #lookAt(ctx: Context, pod: V1Pod, gone: boolean): Promise<void> {
    const podUid = pod.metadata?.uid;
    if (podUid === undefined) return;
    if (!gone && !hasEnded(pod)) await this.#putPullSecrets(pod.metadata?.namespace ?? "");
    const refusal = refusalOf(pod);
    if (refusal !== undefined && !gone) await this.#write(pod, { ...refusal, reason: "GpuNotBorrowed" });
    if ((gone || hasEnded(pod)) && (await end(ctx, { podUid })))
      this.#options.log.info({ pod: pod.metadata?.name, namespace: pod.metadata?.namespace }, "a borrowing pod ended");
  }

  /** A node tries again to pull an image, so they may come after the pod. */
  async #putPullSecrets(namespace: string): Promise<void> {
    const { settings, log } = this.#options;
    const copies = podCopies(settings, namespace);
    const put = this.#pullSecrets.get(namespace) ?? Number.NEGATIVE_INFINITY;
    if (performance.now() - put < SWEEP_MS) return;
    this.#pullSecrets.set(namespace, performance.now());
    try {
      for (const sentence of await copyPullSecrets(this.#client, copies)) log.warn({ namespace }, sentence);
    } catch (error) {
      // One that the settings name may not be there yet.
      if (!isNotFound(error)) log.warn({ err: error, namespace }, "the client's pull secrets could not be put");
    }
  }

  async #tell(ctx: Context, requestId: string): Promise<void> {
    const told = await news(ctx, { requestId });
    const pod = this.#pods?.all().find(({ metadata }) => told !== undefined && metadata?.uid === told.podUid);
    if (told !== undefined && pod !== undefined) await this.#write(pod, told);
  }

  async #write(pod: V1Pod, told: Parameters<typeof podEvent>[1]): Promise<void> {
    const body = podEvent(pod, told, new Date());
    try {
      await this.#client.core.createNamespacedEvent({ namespace: body.metadata.namespace ?? "", body });
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }

  /** What is leased there goes on until its gpud ends. A node of that name that joins again opens the servers. */
  async #followDeleted(ctx: Context, nodeName: string): Promise<void> {
    if (this.#nodes?.all().some(({ metadata }) => metadata?.name === nodeName)) return;
    for (const serverId of await followNode(ctx, { nodeName, closed: "deleted" }))
      this.#options.log.warn({ serverId, nodeName }, "the node of a GPU server was deleted");
  }

  async #follow(ctx: Context, node: V1Node): Promise<void> {
    const nodeName = node.metadata?.name;
    if (nodeName === undefined) return;
    const cordoned = node.spec?.unschedulable === true ? "cordoned" : undefined;
    const closed = this.#updating === nodeName || this.#begun.has(nodeName) ? "update" : cordoned;
    for (const serverId of await followNode(ctx, { nodeName, closed }))
      this.#options.log.info({ serverId, nodeName, closed }, "a GPU server follows its node");
    const after = this.#options.settings.gpuServers?.cordonAfterSeconds;
    if (cordoned !== undefined && after !== undefined) await this.#vacate(ctx, nodeName, after);
  }
}
