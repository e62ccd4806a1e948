/** What pods ask for on their nodes. Others' are read when somebody wants to know, and not watched, as there may be many. */
import type { V1Pod } from "@kubernetes/client-node";
import type { Logger } from "#server/log.ts";
import { type ClusterClient, endingWith } from "./cluster-client.ts";
import { addTo, type Taken } from "./missing.ts";
import { NOT_OURS } from "./objects.ts";

/** So long everybody gets what was read last, from when that was there, however many workspaces wait for room. */
const KEEP_MS = 10_000;
/** So many are asked for at one time. */
const PAGE = 500;
/** An API server that takes longer for all of them is asked no more, until somebody wants to know again. */
const DEADLINE_MS = 30_000;
const FIELDS = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";

/** `endedAt`: undefined while it goes on. */
type Reading = { taken: Promise<Taken | undefined>; endedAt: number | undefined };

export class BoundPods {
  readonly #core: Pick<ClusterClient["core"], "listPodForAllNamespaces">;
  readonly #log: Logger;
  readonly #deadlineMs: number;
  #last: Reading | undefined;

  constructor(
    core: Pick<ClusterClient["core"], "listPodForAllNamespaces">,
    log: Logger,
    { deadlineMs = DEADLINE_MS }: { deadlineMs?: number } = {},
  ) {
    this.#core = core;
    this.#log = log;
    this.#deadlineMs = deadlineMs;
  }

  /**
   * What all of them ask for; undefined where the cluster does not tell. `ours`: those with our label, as they are
   * watched: counted once for all who ask meanwhile, as hundreds may wait.
   */
  async taken(ours: () => readonly V1Pod[]): Promise<Taken | undefined> {
    const endedAt = this.#last?.endedAt;
    if (this.#last === undefined || (endedAt !== undefined && performance.now() - endedAt >= KEEP_MS)) {
      const reading: Reading = { taken: this.#read(ours), endedAt: undefined };
      void reading.taken.then(() => {
        reading.endedAt = performance.now();
      });
      this.#last = reading;
    }
    return await this.#last.taken;
  }

  async #read(ours: () => readonly V1Pod[]): Promise<Taken | undefined> {
    try {
      return addTo(await this.#listOthers(AbortSignal.timeout(this.#deadlineMs)), ours());
    } catch (error) {
      this.#log.warn({ err: error }, "what pods hold on nodes cannot be read; sentences do not say what is missing");
      return undefined;
    }
  }

  async #listOthers(signal: AbortSignal): Promise<Taken> {
    const taken: Taken = new Map();
    let next: string | undefined;
    do {
      const selected = { labelSelector: NOT_OURS, fieldSelector: FIELDS, limit: PAGE, _continue: next };
      const { items, metadata } = await this.#core.listPodForAllNamespaces(selected, endingWith(signal));
      addTo(taken, items);
      next = metadata?._continue;
    } while (next);
    return taken;
  }
}
