/** Tells what a pod waits for, where it takes time to find the words. */
import type { V1Pod } from "@kubernetes/client-node";
import type { Logger } from "#server/log.ts";

type Find = (pod: V1Pod, sentence: string) => Promise<string>;

export class WaitingWords {
  readonly #find: Find;
  readonly #tell: (sentence: string) => void;
  readonly #log: Logger;
  /** What it waits for now, and what words were sought for last: states without a sentence come between. */
  #now: string | undefined;
  #sought: { sentence: string } | undefined;

  /** `find`: a better sentence, or the same. */
  constructor(find: Find, tell: (sentence: string) => void, log: Logger) {
    this.#find = find;
    this.#tell = tell;
    this.#log = log;
  }

  /** Each sentence is told once until another comes, and never when the pod waits for it no more. */
  waitsFor(pod: V1Pod, sentence: string | undefined): void {
    this.#now = sentence;
    if (sentence === undefined || sentence === this.#sought?.sentence) return;
    const search = { sentence };
    this.#sought = search;
    void this.of(pod, sentence).then((found) => {
      if (this.#sought !== search) return;
      if (this.#now === sentence) this.#tell(found);
      else this.#sought = undefined;
    });
  }

  /** The words for a sentence: itself, where none can be found. */
  async of(pod: V1Pod, sentence: string): Promise<string> {
    try {
      return await this.#find(pod, sentence);
    } catch (error) {
      this.#log.warn({ err: error, pod: pod.metadata?.name }, "what a pod waits for cannot be told in more words");
      return sentence;
    }
  }

  /** The pod waits no more, or nobody for it. */
  stop(): void {
    this.#now = undefined;
  }
}
