/** The world of a GPU type as people see it, with what holds everybody back: for showing, not for deciding. */
import { setImmediate } from "node:timers/promises";
import { PgTransaction } from "drizzle-orm/pg-core";
import type { Database, Transaction } from "#server/db/client.ts";
import { isAway } from "#server/errors.ts";
import { Group, groupOf } from "#server/group.ts";
import { type Judged, judgedBeside } from "#server/scheduler/queue.ts";
import type { Waiting } from "#server/scheduler/types.ts";
import { loadWorld, loadWorldBeside } from "./world.ts";

/** From so many requests and leases on, a reading takes so long that it is shown for a while. */
const LONG = 1_000;
/** For so long, milliseconds. */
const SHOWN_MS = 2_000;
/** The next one is made, while this one is still shown, once it is so old. */
const RENEWED_MS = 1_000;

class Readings extends Group<Date, Judged> {
  #latest: Judged | undefined;
  /** Of a long queue, those of its last reading: only who has come since is read with the next. */
  #known: ReadonlyMap<string, Waiting> = new Map();

  constructor(db: Database | Transaction, gpuType: string) {
    super(async (asked) => {
      const now = new Date(Math.max(...asked.map((at) => at.getTime())));
      const world =
        this.#known.size === 0
          ? await loadWorld(db, gpuType, now)
          : await loadWorldBeside(db, gpuType, now, this.#known);
      // Whoever is told from the reading before does not wait for this one.
      const reading = await judgedBeside(world, setImmediate);
      const long = world.queue.length + world.holdings.length >= LONG;
      this.#latest = long ? reading : undefined;
      this.#known = new Map(long ? world.queue.map((waiting) => [waiting.requestId, waiting]) : []);
      return asked.map(() => ({ ok: true as const, value: reading }));
    }, isAway);
  }

  async shown(now: Date, requestIds: readonly string[]): Promise<Judged> {
    const latest = this.#latest;
    if (latest === undefined || !requestIds.every((id) => this.#known.has(id))) return await this.join(now);
    const age = now.getTime() - latest.world.now;
    if (age < 0 || age > SHOWN_MS) return await this.join(now);
    // Whoever asks when that fails hears of it.
    if (age > RENEWED_MS && this.isIdle) this.join(now).catch(() => undefined);
    return latest;
  }
}

/** With a long queue many ask at one time; they are told from one reading, made after all of them have asked. */
const readings = groupOf((db: Database | Transaction, gpuType: string) => new Readings(db, gpuType));

/**
 * For one who waits: as it is now, or a moment later. A long queue is shown as it was up to two seconds ago
 * (`world.now`), in which the request waits already. Others see the same objects: change nothing in them.
 */
export async function shownWorld(
  db: Database | Transaction,
  { gpuType, id }: { gpuType: string; id: string },
  now: Date,
): Promise<Judged> {
  return await shownQueue(db, gpuType, [id], now);
}

/** The same for whoever looks at several of a queue, or waits elsewhere. */
export async function shownQueue(
  db: Database | Transaction,
  gpuType: string,
  requestIds: readonly string[],
  now: Date,
): Promise<Judged> {
  const here = readings(db, gpuType);
  return db instanceof PgTransaction ? await here.join(now) : await here.shown(now, requestIds);
}
