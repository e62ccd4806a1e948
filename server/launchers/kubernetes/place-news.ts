/** What the people of a workspace should know of its node, with what that takes to find out. */
import { connect } from "node:net";
import type { V1Node, V1NodeSelector, V1Pod } from "@kubernetes/client-node";
import type { PlaceNews } from "#server/launchers/launcher.ts";
import type { Logger } from "#server/log.ts";
import type { ClusterClient } from "./cluster-client.ts";
import { admits, answers } from "./eligible.ts";
import { fits, MoveNotices } from "./moves.ts";
import type { KubernetesSettings } from "./settings.ts";
import { isLeft, leavingNews, nodeLost, silentNews, silentSince, unreadyNews, type WayOut } from "./states.ts";
import { purposeOf } from "./volume-news.ts";

/** Where the volumes of a pod can be used, undefined for anywhere, and what people know each as. */
type Volumes = readonly { purpose: string; where: V1NodeSelector | undefined }[];

/** Where a workspace's server listens, as people reach it. */
export type Address = { host: string; port: number };

/** Whoever does not take a connection for so long is not there. */
const REACH_MS = 1_000;
/** So often a workspace on a silent node is asked whether it still answers. */
const ASK_MS = 5_000;
/** For so long a claim of a pod without a node that has no volume is taken to have none. */
const UNBOUND_MS = 10_000;

/** What is known of a pod's node: `lost`, with it the workspace, and another node could take that. */
export type Place = { news?: PlaceNews | undefined; lost?: string };

export class PlaceWatch {
  readonly #client: ClusterClient;
  readonly #settings: KubernetesSettings;
  readonly #log: Logger;
  readonly #notices: MoveNotices;
  /** By the pods' uids; `lasting`: all claims were bound, and their volumes never change where they can be used. */
  readonly #volumes = new Map<string, { found: Volumes; lasting: boolean; at: number }>();
  /** Whether pods on silent nodes answer, by their uids, and when that was asked. */
  readonly #asked = new Map<string, { at: number; reached: boolean }>();

  constructor(client: ClusterClient, settings: KubernetesSettings, log: Logger) {
    this.#client = client;
    this.#settings = settings;
    this.#log = log;
    this.#notices = new MoveNotices(settings.moveSeconds * 1000);
  }

  async of(pod: V1Pod, nodes: readonly V1Node[], address: Address): Promise<Place> {
    const node = nodeOf(pod, nodes);
    if (node === undefined) return {};
    const since = silentSince(node);
    if (since !== undefined) return await this.#silent(pod, nodes, { node, since, address });
    this.#asked.delete(uidOf(pod));
    if (!answers(node)) return { news: unreadyNews(node, this.#settings) };
    // Nobody's work is ended for a move to nowhere.
    const out = isLeft(node) ? await this.wayOut(pod, nodes) : undefined;
    const afterMs = this.#notices.left(uidOf(pod), out?.leads ?? false, performance.now());
    if (out === undefined) return {};
    return { news: leavingNews(node, out.leads ? { afterMs: afterMs ?? 0 } : out) };
  }

  /** Whether what ran there has ended, as far as one can know: its node has been silent for long, and nobody reaches it. */
  async isOff(pod: V1Pod, nodes: readonly V1Node[], address: Address | undefined): Promise<boolean> {
    const node = nodeOf(pod, nodes);
    const since = node === undefined ? undefined : silentSince(node);
    if (since === undefined || this.#lostAt(since) > new Date()) return false;
    return address === undefined || !(await takesConnections(address));
  }

  /** Another node that could take the pod and its volumes, or why there is none. */
  async wayOut(pod: V1Pod, nodes: readonly V1Node[]): Promise<WayOut> {
    const able = nodes.filter((node) => fits(node, pod));
    if (able.length === 0) return { leads: false, why: "no other node can take this workspace" };
    const volumes = await this.volumesOf(pod);
    if (volumes === undefined) return { leads: false, why: "where else its volumes can be used is not known yet" };
    if (able.some((node) => volumes.every(({ where }) => admits(where, node)))) return { leads: true };
    const elsewhere = volumes.find(({ where }) => !able.some((node) => admits(where, node)));
    const which = elsewhere === undefined ? "volumes" : `volume for ${elsewhere.purpose}`;
    return { leads: false, why: `its ${which} can be used on no other node` };
  }

  /**
   * Asked until each claim has its volume, and no more after that. Claims that wait for their volume are asked about
   * again after a while, or when the pod has its node, which most of them get theirs with; undefined while it cannot be
   * known.
   */
  async volumesOf(pod: V1Pod): Promise<Volumes | undefined> {
    const { uid = "", namespace = "" } = pod.metadata ?? {};
    const known = this.#volumes.get(uid);
    const waits = pod.spec?.nodeName === undefined;
    if (known !== undefined && (known.lasting || (waits && performance.now() - known.at < UNBOUND_MS)))
      return known.found;
    const claims = (pod.spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim: claim }) =>
      claim === undefined ? [] : [{ name: claim.claimName, purpose: purposeOf(pod, name) }],
    );
    try {
      const read = await Promise.all(
        claims.map(async ({ name, purpose }) => ({ purpose, ...(await this.#placeOf(namespace, name)) })),
      );
      const found = read.map(({ purpose, where }) => ({ purpose, where }));
      this.#volumes.set(uid, { found, lasting: read.every(({ bound }) => bound), at: performance.now() });
      return found;
    } catch (error) {
      this.#log.warn(
        { err: error, namespace, claims },
        "where the volumes of a workspace can be used cannot be told; asked again",
      );
      return undefined;
    }
  }

  /** The pod is gone. */
  forget(pod: V1Pod): void {
    this.#volumes.delete(uidOf(pod));
    this.#asked.delete(uidOf(pod));
    this.#notices.forget(uidOf(pod));
  }

  async #silent(
    pod: V1Pod,
    nodes: readonly V1Node[],
    { node, since, address }: { node: V1Node; since: Date; address: Address },
  ): Promise<Place> {
    const lostAt = this.#lostAt(since);
    const reached = this.#isReached(uidOf(pod), address);
    const out = await this.wayOut(pod, nodes);
    if (!reached && out.leads && lostAt <= new Date()) return { lost: nodeLost(pod).sentence };
    return { news: silentNews(node, { lostAt, reached, out }) };
  }

  #lostAt(since: Date): Date {
    return new Date(since.getTime() + this.#settings.lostNodeSeconds * 1000);
  }

  /** What was found last. Nobody who looks waits for an answer that may never come: it is there when they look again. */
  #isReached(uid: string, address: Address): boolean {
    const known = this.#asked.get(uid);
    if (known === undefined || performance.now() - known.at >= ASK_MS) {
      this.#asked.set(uid, { at: performance.now(), reached: known?.reached ?? true });
      void takesConnections(address).then((reached) => {
        if (this.#asked.has(uid)) this.#asked.set(uid, { at: performance.now(), reached });
      });
    }
    return known?.reached ?? true;
  }

  /** Where a claim's volume can be used, undefined for anywhere; `bound`: whether it has one. */
  async #placeOf(namespace: string, name: string): Promise<{ bound: boolean; where: V1NodeSelector | undefined }> {
    const claim = await this.#client.core.readNamespacedPersistentVolumeClaim({ namespace, name });
    const volume = claim.spec?.volumeName;
    if (volume === undefined) return { bound: false, where: undefined };
    const { spec } = await this.#client.core.readPersistentVolume({ name: volume });
    return { bound: true, where: spec?.nodeAffinity?.required };
  }
}

const uidOf = (pod: V1Pod): string => pod.metadata?.uid ?? "";

function nodeOf(pod: V1Pod, nodes: readonly V1Node[]): V1Node | undefined {
  return nodes.find(({ metadata }) => metadata?.name === pod.spec?.nodeName);
}

/** Whether somebody listens there. */
async function takesConnections({ host, port }: Address): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ host, port, timeout: REACH_MS });
    const settle = (taken: boolean) => {
      socket.destroy();
      resolve(taken);
    };
    socket.once("connect", () => settle(true));
    socket.once("timeout", () => settle(false));
    socket.once("error", () => settle(false));
  });
}
