/**
 * Grants for many at once: whoever changes a queue joins the next round of its GPU type, and one round decides for all
 * who joined. The type's lock is taken once a round, not once a request.
 */
import { systemContext } from "#server/context.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { type Advanced, advanceQueue } from "./advance.ts";
import { withTypeLock } from "./with-type-lock.ts";

/** The round that runs, and the one that starts when it ends: only that one sees what is committed now. */
class Rounds {
  #running: Promise<Advanced> | undefined;
  #next: Promise<Advanced> | undefined;

  join(run: () => Promise<Advanced>): Promise<Advanced> {
    if (this.#running === undefined) return this.#start(run);
    const over = () => undefined;
    this.#next ??= this.#running.then(over, over).then(async () => {
      this.#next = undefined;
      return await this.#start(run);
    });
    return this.#next;
  }

  #start(run: () => Promise<Advanced>): Promise<Advanced> {
    const round = run().finally(() => {
      if (this.#running === round) this.#running = undefined;
    });
    this.#running = round;
    return round;
  }
}

const all = new WeakMap<object, Map<string, Rounds>>();

/**
 * Advances the queue of a type after a change that is committed; settles when the round that saw it is. Inside a
 * transaction (nothing is committed yet) call `advanceQueue` under the lock instead.
 */
export async function advanceTogether(db: Database | Transaction, gpuType: string): Promise<Advanced> {
  const types = all.get(db) ?? new Map<string, Rounds>();
  all.set(db, types);
  const rounds = types.get(gpuType) ?? new Rounds();
  types.set(gpuType, rounds);
  return await rounds.join(
    async () => await withTypeLock(systemContext(db), gpuType, async (tx) => await advanceQueue(tx, gpuType)),
  );
}
