/** What the people of a workspace should know of its node, with what that takes to find out. */
import type { V1Node, V1NodeSelector, V1Pod } from "@kubernetes/client-node";
import type { PlaceNews } from "#server/launchers/launcher.ts";
import type { Logger } from "#server/log.ts";
import type { ClusterClient } from "./cluster-client.ts";
import { fits, MoveNotices } from "./moves.ts";
import type { KubernetesSettings } from "./settings.ts";
import { isLeft, newsOf } from "./states.ts";

type Volumes = readonly (V1NodeSelector | undefined)[];

export class PlaceWatch {
  readonly #client: ClusterClient;
  readonly #settings: KubernetesSettings;
  readonly #log: Logger;
  readonly #notices: MoveNotices;
  /** Where the volumes of pods can be used, by the pods' uids; of those whose node was to be left. */
  readonly #volumes = new Map<string, Volumes>();

  constructor(client: ClusterClient, settings: KubernetesSettings, log: Logger) {
    this.#client = client;
    this.#settings = settings;
    this.#log = log;
    this.#notices = new MoveNotices(settings.moveSeconds * 1000);
  }

  /** Nobody's work is ended for a move to nowhere: it needs another node that could take the pod and its volumes. */
  async of(pod: V1Pod, nodes: readonly V1Node[]): Promise<PlaceNews | undefined> {
    const node = nodes.find(({ metadata }) => metadata?.name === pod.spec?.nodeName);
    if (node === undefined) return undefined;
    const elsewhere = isLeft(node) && nodes.some((one) => fits(one, pod));
    const volumes = elsewhere ? await this.#volumesOf(pod) : undefined;
    const moves = volumes !== undefined && nodes.some((one) => fits(one, pod, volumes));
    const afterMs = this.#notices.left(pod.metadata?.uid ?? "", moves, Date.now());
    return newsOf(node, this.#settings, afterMs === undefined ? undefined : { afterMs });
  }

  /** The pod is gone. */
  forget(pod: V1Pod): void {
    this.#volumes.delete(pod.metadata?.uid ?? "");
    this.#notices.forget(pod.metadata?.uid ?? "");
  }

  /** Asked once for each pod that may move, as a volume never changes its place; undefined while it cannot be known. */
  async #volumesOf(pod: V1Pod): Promise<Volumes | undefined> {
    const { uid = "", namespace = "" } = pod.metadata ?? {};
    const known = this.#volumes.get(uid);
    if (known !== undefined) return known;
    const claims = (pod.spec?.volumes ?? []).flatMap((one) => one.persistentVolumeClaim?.claimName ?? []);
    try {
      const found = await Promise.all(claims.map(async (name) => await this.#placeOf(namespace, name)));
      this.#volumes.set(uid, found);
      return found;
    } catch (error) {
      this.#log.warn({ err: error, namespace, claims }, "where a workspace could move cannot be told; asked again");
      return undefined;
    }
  }

  async #placeOf(namespace: string, name: string): Promise<V1NodeSelector | undefined> {
    const claim = await this.#client.core.readNamespacedPersistentVolumeClaim({ namespace, name });
    const volume = claim.spec?.volumeName;
    if (volume === undefined) return undefined;
    return (await this.#client.core.readPersistentVolume({ name: volume })).spec?.nodeAffinity?.required;
  }
}
