/** The world of a GPU type as people see it, with what holds everybody back: for showing, not for deciding. */
import { PgTransaction } from "drizzle-orm/pg-core";
import type { Database, Transaction } from "#server/db/client.ts";
import { isAway } from "#server/errors.ts";
import { Group, groupOf } from "#server/group.ts";
import { type Judged, judged } from "#server/scheduler/queue.ts";
import { loadWorld } from "./world.ts";

/** From so many requests and leases on, a reading takes so long that it is shown for a while. */
const LONG = 1_000;
/** For so long, milliseconds. */
const SHOWN_MS = 2_000;
/** The next one is made, while this one is still shown, once it is so old. */
const RENEWED_MS = 1_000;

class Readings extends Group<Date, Judged> {
  #latest: Judged | undefined;

  constructor(db: Database | Transaction, gpuType: string) {
    super(async (asked) => {
      const now = new Date(Math.max(...asked.map((at) => at.getTime())));
      const reading = judged(await loadWorld(db, gpuType, now));
      this.#latest = isLong(reading) ? reading : undefined;
      return asked.map(() => ({ ok: true as const, value: reading }));
    }, isAway);
  }

  async shown(now: Date, requestId: string): Promise<Judged> {
    const latest = this.#latest;
    if (latest === undefined || !knows(latest, requestId)) return await this.join(now);
    const age = now.getTime() - latest.world.now;
    if (age < 0 || age > SHOWN_MS) return await this.join(now);
    // Whoever asks when that fails hears of it.
    if (age > RENEWED_MS && this.isIdle) this.join(now).catch(() => undefined);
    return latest;
  }
}

const isLong = ({ world }: Judged): boolean => world.queue.length + world.holdings.length >= LONG;

const knows = ({ world }: Judged, requestId: string): boolean =>
  world.queue.some((waiting) => waiting.requestId === requestId);

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
  const here = readings(db, gpuType);
  return db instanceof PgTransaction ? await here.join(now) : await here.shown(now, id);
}
