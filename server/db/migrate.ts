/** Migrations go forward only; a process refuses to start on a schema newer than its own. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate } from "drizzle-orm/postgres-js/migrator";
import type postgres from "postgres";
import { z } from "zod";
import { connect } from "#server/db/connect.ts";
import { databaseCode, isAway } from "#server/errors.ts";
import type { Logger } from "#server/log.ts";

const journal = z.object({ entries: z.array(z.object({ when: z.number(), tag: z.string() })) });

/** Any number that no other lock of ours uses. */
const MIGRATION_LOCK = 7_411_001;

/** Brings the database to this version's schema. Processes that start together wait for one another. */
export async function migrateDatabase(url: string, folder: string = path.resolve("drizzle")): Promise<void> {
  const sql = connect(url, { max: 1, onnotice: () => undefined, connect_timeout: 10 });
  try {
    await sql`select pg_advisory_lock(${MIGRATION_LOCK})`;
    await refuseNewerSchema(sql, folder);
    await migrate(drizzle(sql), { migrationsFolder: folder });
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Pause between two attempts to reach a database. */
const REACH_AGAIN_MS = 1_000;
/** Codes of a host that is not there yet, as that of a cluster's service without a ready pod. */
const MISSING_HOST = new Set(["EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND"]);

/**
 * For processes that do not migrate: `checkSchema`, which waits while the database is away. Each new reason is logged.
 * SIGTERM and SIGINT end the process meanwhile, also as the first process of a container.
 */
export async function awaitSchema(sql: postgres.Sql, log: Logger): Promise<void> {
  const end = () => process.exit(0);
  process.once("SIGTERM", end).once("SIGINT", end);
  let reason: string | undefined;
  try {
    for (;;) {
      try {
        return await checkSchema(sql);
      } catch (error) {
        const code = databaseCode(error) ?? "";
        if (!isAway(error) && !MISSING_HOST.has(code)) throw error;
        if (code !== reason) log.warn({ err: error }, "the database does not answer; the start waits for it");
        reason = code;
        await sleep(REACH_AGAIN_MS);
      }
    }
  } finally {
    process.off("SIGTERM", end).off("SIGINT", end);
  }
}

/** Throws unless the schema is exactly the one this version knows. */
export async function checkSchema(sql: postgres.Sql, folder: string = path.resolve("drizzle")): Promise<void> {
  await refuseNewerSchema(sql, folder);
  const [applied, known] = await Promise.all([lastApplied(sql), lastKnown(folder)]);
  if (applied < known)
    throw new Error("The database's schema is older than this version of Sluice. Start it with `npm start`.");
}

async function refuseNewerSchema(sql: postgres.Sql, folder: string): Promise<void> {
  const [applied, known] = await Promise.all([lastApplied(sql), lastKnown(folder)]);
  if (applied > known) {
    throw new Error("The database was migrated by a newer version of Sluice. Start that version, or restore a backup.");
  }
}

async function lastKnown(folder: string): Promise<number> {
  const parsed = journal.parse(JSON.parse(await readFile(path.join(folder, "meta", "_journal.json"), "utf8")));
  return Math.max(0, ...parsed.entries.map((entry) => entry.when));
}

async function lastApplied(sql: postgres.Sql): Promise<number> {
  const [table] = await sql`select to_regclass('drizzle.__drizzle_migrations') as name`;
  if (table?.name == null) return 0;
  const [row] = await sql<{ last: string | null }[]>`select max(created_at) as last from drizzle.__drizzle_migrations`;
  return Number(row?.last ?? 0);
}
