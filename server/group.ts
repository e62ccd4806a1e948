/**
 * Group commit: while one batch is worked off, whoever comes waits for the next, and one batch serves all of them. What
 * a batch reads, it reads after everybody in it has come.
 */

import { promisify } from "node:util";

/** One member's part of a batch. A failure of its own fails nobody else. */
export type Outcome<Out> = { ok: true; value: Out } | { ok: false; error: unknown };

type Member<In, Out> = { input: In; resolve: (value: Out) => void; reject: (error: unknown) => void };

/** More than anybody waits for at once, and far less than what a statement can hold. */
const MOST = 256;

const immediate = promisify(setImmediate);

export class Group<In, Out> {
  readonly #work: (inputs: readonly In[]) => Promise<readonly Outcome<Out>[]>;
  /** Whether a batch that has failed as a whole would fail for each of its members too: the database is away. */
  readonly #hopeless: (error: unknown) => boolean;
  #waiting: Member<In, Out>[] = [];
  #running = false;

  /** `work` answers in the order of its inputs. */
  constructor(
    work: (inputs: readonly In[]) => Promise<readonly Outcome<Out>[]>,
    hopeless: (error: unknown) => boolean = () => false,
  ) {
    this.#work = work;
    this.#hopeless = hopeless;
  }

  /** Whether nobody waits, and nothing is worked off. */
  get isIdle(): boolean {
    return !this.#running;
  }

  async join(input: In): Promise<Out> {
    return await new Promise<Out>((resolve, reject) => {
      this.#waiting.push({ input, resolve, reject });
      if (!this.#running) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#waiting.length > 0) {
      // Those who come by the same event, as the answers to one batch do, share the next one.
      await immediate();
      const batch = this.#waiting.slice(0, MOST);
      this.#waiting = this.#waiting.slice(MOST);
      await this.#serve(batch);
    }
    this.#running = false;
  }

  async #serve(batch: readonly Member<In, Out>[]): Promise<void> {
    try {
      const outcomes = await this.#work(batch.map((member) => member.input));
      for (const [index, member] of batch.entries()) settle(member, outcomes[index]);
    } catch (error) {
      if (batch.length === 1 || this.#hopeless(error)) for (const member of batch) member.reject(error);
      // One of them has spoiled it for all: each alone.
      else for (const member of batch) await this.#serve([member]);
    }
  }
}

function settle<In, Out>(member: Member<In, Out>, outcome: Outcome<Out> | undefined): void {
  if (outcome === undefined) member.reject(new Error("a batch has left out one of its members"));
  else if (outcome.ok) member.resolve(outcome.value);
  else member.reject(outcome.error);
}

/** One group for each owner (a database, say) and key; it goes with its owner. */
export function groupOf<Owner extends object, Of>(
  make: (owner: Owner, key: string) => Of,
): (owner: Owner, key?: string) => Of {
  const all = new WeakMap<Owner, Map<string, Of>>();
  return (owner, key = "") => {
    const groups = all.get(owner) ?? new Map<string, Of>();
    all.set(owner, groups);
    const known = groups.get(key) ?? make(owner, key);
    groups.set(key, known);
    return known;
  };
}
