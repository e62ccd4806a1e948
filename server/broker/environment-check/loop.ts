/** One elected broker checks what people have proposed, one environment at a time. */
import { holdLeadership } from "#server/broker/reconciler/leadership.ts";
import { startRounds } from "#server/broker/rounds.ts";
import type { OpenDatabase } from "#server/db/client.ts";
import { env } from "#server/env.ts";
import { trimCache } from "#server/launchers/local/confined.ts";
import { createLive } from "#server/live.ts";
import type { Logger } from "#server/log.ts";
import { CHECK_LIMITS, type CheckLimits, check } from "./check.ts";
import { type Checked, isWanted, nextCheck, sweepTests } from "./state.ts";
import { sweepBuilds } from "./sweep-builds.ts";

const EVERY_MS = 10_000;

/** Starts the loop; `stop` leaves the check under way to the next who leads. */
export function startEnvironmentChecks(
  database: OpenDatabase,
  log: Logger,
  limits: CheckLimits = CHECK_LIMITS,
): { stop: () => Promise<void> } {
  const { db } = database;
  const leadership = holdLeadership(database.sql, log, "environment checks");
  const live = createLive(database.sql);
  let current: { row: Checked; abort: AbortController } | undefined;
  let stopped = false;

  const round = async (): Promise<void> => {
    try {
      while (!stopped && (await leadership.isLeader())) {
        const { SLUICE_STATE_DIR: stateDir, SLUICE_WHEEL: wheel } = env();
        await sweepTests(db);
        await sweepBuilds(db, stateDir);
        const row = await nextCheck(db);
        if (row === undefined || stopped) return;
        const abort = new AbortController();
        current = { row, abort };
        await check({ db, log, row, stateDir, wheel, signal: abort.signal, limits });
        current = undefined;
        await trimCache(stateDir);
      }
    } catch (error) {
      log.warn({ err: error }, "proposed environments could not be checked");
    } finally {
      current = undefined;
    }
  };
  const rounds = startRounds(EVERY_MS, round);
  const look = async (): Promise<void> => {
    if (current === undefined) return rounds.wake();
    const { row, abort } = current;
    if (!(await isWanted(db, row))) abort.abort();
  };
  const unsubscribe = live.subscribe(["environment"], () => {
    look().catch((error: unknown) => log.warn({ err: error }, "a check could not be looked at"));
  });
  return {
    stop: async () => {
      stopped = true;
      current?.abort.abort();
      unsubscribe();
      await live.close();
      await rounds.stop();
      await leadership.release();
    },
  };
}
