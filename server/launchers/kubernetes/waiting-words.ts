/** Tells what a pod waits for, where it takes time to find the words. */
import type { V1Pod } from "@kubernetes/client-node";

type Find = (pod: V1Pod, sentence: string) => Promise<string>;

export class WaitingWords {
  readonly #find: Find;
  readonly #tell: (sentence: string) => void;
  /** What it waits for now, and what words were sought for last: states without a sentence come between. */
  #now: string | undefined;
  #sought: { sentence: string } | undefined;

  /** `find`: a better sentence, or the same; it never fails. */
  constructor(find: Find, tell: (sentence: string) => void) {
    this.#find = find;
    this.#tell = tell;
  }

  /** Each sentence is told once until another comes, and never when the pod waits for it no more. */
  waitsFor(pod: V1Pod, sentence: string | undefined): void {
    this.#now = sentence;
    if (sentence === undefined || sentence === this.#sought?.sentence) return;
    const search = { sentence };
    this.#sought = search;
    void this.#find(pod, sentence).then((found) => {
      if (this.#sought !== search) return;
      if (this.#now === sentence) this.#tell(found);
      else this.#sought = undefined;
    });
  }

  /** The pod waits no more, or nobody for it. */
  stop(): void {
    this.#now = undefined;
  }
}
