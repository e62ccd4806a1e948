/** What others' pods ask for on their nodes: read when somebody wants to know, and not watched, as there may be many. */
import type { Logger } from "#server/log.ts";
import type { ClusterClient } from "./cluster-client.ts";
import { addTo, type Taken } from "./missing.ts";
import { NOT_OURS } from "./objects.ts";

/** So long everybody gets what was read last, however many workspaces wait for room. */
const KEEP_MS = 10_000;
/** So many pods are held at one time. */
const PAGE = 500;
const FIELDS = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";

export class BoundPods {
  readonly #core: Pick<ClusterClient["core"], "listPodForAllNamespaces">;
  readonly #log: Logger;
  #last: { at: number; taken: Promise<Taken | undefined> } | undefined;

  constructor(core: Pick<ClusterClient["core"], "listPodForAllNamespaces">, log: Logger) {
    this.#core = core;
    this.#log = log;
  }

  /** Undefined where the cluster does not tell. */
  async others(): Promise<Taken | undefined> {
    const now = Date.now();
    if (this.#last === undefined || now - this.#last.at >= KEEP_MS) {
      const taken = this.#list().catch((error: unknown) => {
        this.#log.warn({ err: error }, "what pods hold on nodes cannot be read; sentences do not say what is missing");
        return undefined;
      });
      this.#last = { at: now, taken };
    }
    return await this.#last.taken;
  }

  async #list(): Promise<Taken> {
    const taken: Taken = new Map();
    let next: string | undefined;
    do {
      const selected = { labelSelector: NOT_OURS, fieldSelector: FIELDS, limit: PAGE };
      const { items, metadata } = await this.#core.listPodForAllNamespaces({ ...selected, _continue: next });
      addTo(taken, items);
      next = metadata?._continue;
    } while (next);
    return taken;
  }
}
