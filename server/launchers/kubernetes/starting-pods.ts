/** Pods that start: what is told of one until it runs, and how long it is waited for. */
import { setTimeout as sleep } from "node:timers/promises";
import type { CoreV1Event, V1Node, V1Pod, V1Service } from "@kubernetes/client-node";
import type { BegunWorkspace, LaunchReport } from "#server/launchers/launcher.ts";
import type { Logger } from "#server/log.ts";
import { within } from "#server/within.ts";
import { BoundPods } from "./bound-pods.ts";
import { type ClusterClient, isUnreachable, type Watched } from "./cluster-client.ts";
import type { Room } from "./missing.ts";
import { datasetObjectName, generationOf, namespaceOf, podName } from "./objects.ts";
import type { PlaceWatch } from "./place-news.ts";
import type { KubernetesSettings } from "./settings.ts";
import { isReady, mountSentence, podState } from "./states.ts";
import { isUnscheduled, lacksRoom, unscheduledSentence, waitsForVolume } from "./unscheduled.ts";
import { volumeNews } from "./volume-news.ts";
import { WaitingWords } from "./waiting-words.ts";

/** So many lines of a starting pod are shown among its steps. */
const STARTING_LINES = 200;
/** No sentence waits longer for what the cluster knows of a pod that it has no place for. */
const ROOM_MS = 3_000;
/** So often a start asks a cluster again that does not answer. */
const ASK_AGAIN_MS = 1_000;

/** How a pod is waited for. */
type Waiting = {
  report: LaunchReport;
  /** The start was called off. */
  signal: AbortSignal;
  /** That, or its time is over. */
  limit: AbortSignal;
  /** Why one of its volumes can never be mounted. */
  lacking: string | undefined;
};

/** `find`: the pod that was made, as the watch tells of it. */
type Followed = Waiting & {
  find: () => V1Pod | undefined;
  pods: Watched<V1Pod>;
  lastEvent: () => CoreV1Event | undefined;
};

type Parts = {
  client: ClusterClient;
  settings: KubernetesSettings;
  log: Logger;
  places: PlaceWatch;
  watches: () => Promise<{ pods: Watched<V1Pod>; nodes: Watched<V1Node> }>;
};

export class StartingPods {
  readonly #client: ClusterClient;
  readonly #settings: KubernetesSettings;
  readonly #log: Logger;
  readonly #places: PlaceWatch;
  readonly #boundPods: BoundPods;
  readonly #watches: Parts["watches"];

  constructor({ client, settings, log, places, watches }: Parts) {
    this.#client = client;
    this.#settings = settings;
    this.#log = log;
    this.#places = places;
    this.#boundPods = new BoundPods(client.core, log);
    this.#watches = watches;
  }

  /**
   * Waits for a pod, telling what the cluster and the pod say meanwhile; `make` is called when somebody listens. Gives the
   * service that leads to it. Throws {@link PodLost} where it can be made again, else why it does not run.
   */
  async untilRuns(
    begun: BegunWorkspace,
    waiting: Waiting,
    make: () => Promise<{ pod: V1Pod; service: V1Service }>,
  ): Promise<V1Service> {
    const { report } = waiting;
    const { pods } = await this.#watches();
    const namespace = namespaceOf(this.#settings, begun.teamId);
    const follower = await this.#followEvents(namespace, begun, (line) => report.log("pod", line));
    const printed = this.#followLog(pods, begun, (line) => report.log("pod", line));
    try {
      const { pod: made, service } = await make();
      const find = () => pods.of(begun.id).find(({ metadata }) => metadata?.uid === made.metadata?.uid);
      await this.#untilReady(begun, { ...waiting, find, pods, lastEvent: follower.last });
      const node = podOf(pods, begun.id)?.spec?.nodeName;
      report.done("pod", `The pod runs on ${node ?? "its node"}`);
      return service;
    } finally {
      printed.stop();
      await follower.stop();
    }
  }

  /** Hands over what the cluster tells about the pod and its claim, each line once. */
  async #followEvents(namespace: string, begun: BegunWorkspace, onLine: (line: string) => void) {
    const since = Date.now() - 1_000;
    let last: CoreV1Event | undefined;
    const follow = async (name: string) => {
      const fields = `involvedObject.name=${name}`;
      const events = await this.#client.watch<CoreV1Event>({
        path: `/api/v1/namespaces/${namespace}/events`,
        fields,
        list: () => this.#client.core.listNamespacedEvent({ namespace, fieldSelector: fields }),
      });
      events.onChange((event, deleted) => {
        const at = event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp;
        if (deleted || (at !== undefined && new Date(at).getTime() < since - 1_000)) return;
        last = event;
        onLine(`${event.reason ?? "Event"}: ${event.message ?? ""}`);
      });
      return events;
    };
    const asked = await Promise.allSettled([begun.id, podName(begun)].map(follow));
    const followed = asked.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    const refused = asked.find((each) => each.status === "rejected");
    if (refused !== undefined) {
      await Promise.all(followed.map((events) => events.stop()));
      throw refused.reason;
    }
    return { last: () => last, stop: async () => void (await Promise.all(followed.map((events) => events.stop()))) };
  }

  /** Hands over what the pod's first container prints while it starts. */
  #followLog(pods: Watched<V1Pod>, begun: BegunWorkspace, onLine: (line: string) => void): { stop: () => void } {
    let left = STARTING_LINES;
    const tell = (line: string) => {
      if (line.trim() !== "" && left-- > 0) onLine(line);
    };
    let following: Promise<{ stop: () => void }> | undefined;
    const look = () => {
      const pod = podOf(pods, begun.id);
      const { name, namespace } = pod?.metadata ?? {};
      if (following !== undefined || pod === undefined || name !== podName(begun) || namespace === undefined) return;
      if (podState(pod).kind !== "running") return;
      following = this.#client.followLog({ namespace, name, container: "workspace" }, tell).catch((error: unknown) => {
        // The last lines are read once more when the start fails.
        this.#log.debug({ err: error, name, namespace }, "a starting pod's log could not be followed");
        return { stop: () => undefined };
      });
    };
    const unsubscribe = pods.onChange(look);
    look();
    return {
      stop: () => {
        unsubscribe();
        left = 0;
        void following?.then(({ stop }) => stop());
      },
    };
  }

  /** What a pod waits for; of a volume, which and why, and of a node, whether one is large enough and how much is missing. */
  async #inWords(pod: V1Pod, sentence: string): Promise<string> {
    if (!isUnscheduled(pod)) return sentence;
    if (waitsForVolume(pod))
      return (await within(ROOM_MS, volumeNews(this.#client.core, pod), () => undefined)) ?? sentence;
    const { nodes, pods } = await this.#watches();
    const room = lacksRoom(pod, nodes.all())
      ? await within(ROOM_MS, this.#roomFor(pod, pods), () => undefined)
      : undefined;
    return unscheduledSentence(pod, nodes.all(), room);
  }

  /** What the pods leave of the nodes, ours as they are watched; undefined where that cannot be known. */
  async #roomFor(pod: V1Pod, ours: Watched<V1Pod>): Promise<Room | undefined> {
    const [taken, volumes] = await Promise.all([this.#boundPods.taken(() => ours.all()), this.#places.volumesOf(pod)]);
    if (taken === undefined || volumes === undefined) return undefined;
    return { taken, volumes: volumes.map(({ where }) => where) };
  }

  async #untilReady(begun: BegunWorkspace, waiting: Followed): Promise<void> {
    const { find, pods, report, signal, limit, lacking, lastEvent } = waiting;
    const words = new WaitingWords(this.#inWords.bind(this), (sentence) => report.log("pod", sentence), this.#log);
    await new Promise<void>((resolve, reject) => {
      let there = false;
      const look = () => {
        const pod = find();
        // Whoever empties a node may take one that has not come to it yet.
        if (there && pod === undefined) return settle(() => reject(new PodLost("The pod was deleted before it ran.")));
        if (pod === undefined) return;
        there = true;
        const state = podState(pod);
        if (state.kind === "ended" && pod.spec?.nodeName === undefined)
          return settle(() => reject(new PodLost("The pod was evicted before it ran.")));
        if (state.kind === "running" && isReady(pod)) settle(resolve);
        else if (state.kind === "failed" || state.kind === "ended") settle(() => reject(new Error(state.sentence)));
        else words.waitsFor(pod, state.kind === "waiting" ? state.sentence : undefined);
      };
      const late = async () => {
        if (signal.aborted)
          return settle(() =>
            reject(signal.reason instanceof Error ? signal.reason : new Error("The start was called off.")),
          );
        const pod = find();
        const state = pod === undefined ? undefined : podState(pod);
        const waits = state?.kind === "waiting" ? state.sentence : undefined;
        const told = pod === undefined || waits === undefined ? undefined : await words.of(pod, waits);
        const event = lastEvent();
        const mount =
          event?.reason === "FailedMount" || event?.reason === "FailedAttachVolume"
            ? mountSentence(event.message ?? "", mountedDataset(begun, event.message))
            : undefined;
        settle(() =>
          reject(
            new Error(
              told ??
                lacking ??
                mount ??
                `The pod was not ready after ${this.#settings.startSeconds} s. The log below says what it did last.`,
            ),
          ),
        );
      };
      const settle = (finish: () => void) => {
        words.stop();
        unsubscribe();
        limit.removeEventListener("abort", end);
        finish();
      };
      const end = () => void late();
      const unsubscribe = pods.onChange(look);
      limit.addEventListener("abort", end, { once: true });
      if (limit.aborted) end();
      else look();
    });
  }
}

/** Does it, and again while the cluster does not answer and there is time. */
export async function untilItAnswers<T>(report: LaunchReport, limit: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (let told = false; ; told = true) {
    try {
      return await work();
    } catch (error) {
      if (!isUnreachable(error) || limit.aborted) throw error;
      if (!told) report.log("pod", "The cluster does not answer. It is asked again until it does.");
      await pause(limit, error);
    }
  }
}

/** A while before something is tried again; with its fault when the time is over. */
export async function pause(limit: AbortSignal, error: unknown): Promise<void> {
  await sleep(ASK_AGAIN_MS, undefined, { signal: limit }).catch(() => undefined);
  if (limit.aborted) throw error;
}

/** A pod that is gone before it ran anywhere: nothing is lost by making it again. */
export class PodLost extends Error {}

/** The dataset that an event about a volume means. */
function mountedDataset(begun: BegunWorkspace, message = ""): string | undefined {
  const found = begun.datasets.find((dataset) => message.includes(datasetObjectName(begun, dataset)));
  return found === undefined ? undefined : `the dataset ${found.name}`;
}

/** The workspace's pod; where the watch still tells of one that was ended, that of the latest start. */
export function podOf(pods: Watched<V1Pod>, id: string): V1Pod | undefined {
  return pods
    .of(id)
    .reduce<V1Pod | undefined>(
      (latest, pod) => (latest === undefined || generationOf(pod) > generationOf(latest) ? pod : latest),
      undefined,
    );
}
