/** The world of a GPU type as people see it, with what holds everybody back: for showing, not for deciding. */
import type { Database, Transaction } from "#server/db/client.ts";
import { isAway } from "#server/errors.ts";
import { Group, groupOf } from "#server/group.ts";
import { evaluateQueue } from "#server/scheduler/queue.ts";
import type { Verdict, World } from "#server/scheduler/types.ts";
import { loadWorld } from "./world.ts";

export type Shown = { world: World; verdicts: readonly Verdict[] };

/** With a long queue many ask at one time; they are told from one reading, made after all of them have asked. */
const readings = groupOf<Database | Transaction, Date, Shown>(
  (db, gpuType) =>
    new Group<Date, Shown>(async (asked) => {
      const now = new Date(Math.max(...asked.map((at) => at.getTime())));
      const world = await loadWorld(db, gpuType, now);
      const shown = { world, verdicts: evaluateQueue(world) };
      return asked.map(() => ({ ok: true as const, value: shown }));
    }, isAway),
);

/** As it is now, or a moment later. Others see the same objects: change nothing in them. */
export async function shownWorld(db: Database | Transaction, gpuType: string, now: Date): Promise<Shown> {
  return await readings(db, gpuType).join(now);
}
