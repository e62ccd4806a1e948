/** One process in the installation leads a loop: the one that holds its advisory lock on a connection of its own. */
import type { ReservedSql } from "postgres";
import type { Sql } from "#server/db/client.ts";
import type { Logger } from "#server/log.ts";

/** The loops that one process leads, each with the number of its lock: two of one number would shut each other out. */
export const LOCKS = {
  reconciler: 7_411_010,
  liveness: 7_411_011,
  "workspace watch": 7_411_012,
  "cluster watch": 7_411_013,
  "dataset measuring": 7_411_014,
  "environment checks": 7_411_015,
  "limit of removed files": 7_411_016,
} as const;

export type Leadership = {
  /** Takes the lock when it is free; true while we hold it and our connection lives. */
  isLeader: () => Promise<boolean>;
  release: () => Promise<void>;
};

export function holdLeadership(sql: Sql, log: Logger, loop: keyof typeof LOCKS): Leadership {
  const lock = LOCKS[loop];
  let held: ReservedSql | undefined;
  let pid: number | undefined;
  /** One question at a time: two that each take a connection would refuse one another, or lose the one with the lock. */
  let asking: Promise<boolean> | undefined;

  const ask = async (): Promise<boolean> => {
    if (held !== undefined) {
      // The lock lives with its server process: another process means a new connection, without the lock.
      const [row] = await held`select pg_backend_pid() as pid`.catch(() => []);
      if (row?.pid === pid) return true;
      // Not released: a lost connection is the pool's again already, and releasing would hand it out as a living one.
      held = undefined;
      log.warn({ loop }, "the connection that held the leader's lock was lost");
    }
    const connection = await sql.reserve();
    const [row] = await connection`select pg_try_advisory_lock(${lock}) as got, pg_backend_pid() as pid`;
    if (row?.got !== true) {
      connection.release();
      return false;
    }
    pid = Number(row.pid);
    held = connection;
    return true;
  };

  return {
    async isLeader() {
      asking ??= ask().finally(() => {
        asking = undefined;
      });
      return await asking;
    },
    async release() {
      const connection = held;
      held = undefined;
      if (connection === undefined) return;
      const unlocked = await connection`select pg_advisory_unlock(${lock})`.catch(() => undefined);
      if (unlocked !== undefined) connection.release();
    },
  };
}
