/** The way to PostgreSQL. */
import { drizzle, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import type postgres from "postgres";
import { connect } from "#server/db/connect.ts";
import * as schema from "#server/db/schema/index.ts";
import { databaseUrl } from "#server/env.ts";

export type Sql = postgres.Sql;
type TransactionSql = postgres.TransactionSql;
export type Database = PostgresJsDatabase<typeof schema>;
export type Transaction = Parameters<Parameters<Database["transaction"]>[0]>[0];

export type OpenDatabase = {
  db: Database;
  sql: Sql;
  close: () => Promise<void>;
};

/** Opens a pool of connections. Connections are made on first use and again after the server was away. */
export function openDatabase(url: string, options: { max?: number; applicationName?: string } = {}): OpenDatabase {
  const sql = connect(url, {
    max: options.max ?? 10,
    connect_timeout: 5,
    idle_timeout: 60,
    // Below the default of exponential steps up to minutes: after a restart of the server we are back within a second.
    backoff: (attempt) => Math.min(0.1 * 2 ** attempt, 1),
    onnotice: () => undefined,
    connection: { application_name: options.applicationName ?? "sluice", TimeZone: "UTC" },
  });
  return { db: drizzle(prepared(sql), { schema }), sql, close: () => sql.end({ timeout: 5 }) };
}

/** Statements with more parameters than these differ from call to call; preparing each would only fill the server. */
const MOST_PARAMETERS = 48;

/**
 * The same connections, with statements that the server keeps prepared. Drizzle asks for none: every statement would be
 * parsed anew, after a round trip of its own for the types of its parameters.
 */
function prepared<S extends Sql | TransactionSql>(sql: S): S {
  const unsafe: Sql["unsafe"] = (text, parameters, options) => {
    const count = parameters?.length ?? 0;
    return sql.unsafe(text, parameters, { ...options, prepare: count > 0 && count <= MOST_PARAMETERS });
  };
  return new Proxy(sql, {
    get(target, name) {
      if (name === "unsafe") return unsafe;
      const value: unknown = Reflect.get(target, name);
      if (name !== "begin" && name !== "savepoint") return value;
      return (work: (scoped: TransactionSql) => unknown) =>
        (value as (run: typeof work) => unknown)((scoped) => work(prepared(scoped)));
    },
  });
}

const shared = globalThis as typeof globalThis & { __sluiceDatabase?: OpenDatabase };

/** The process's own pool, opened on first use (one a process, even where a bundler loads this module twice). */
export function database(): OpenDatabase {
  shared.__sluiceDatabase ??= openDatabase(databaseUrl());
  return shared.__sluiceDatabase;
}

/** Puts another pool in the place of the process's own; returns the one that was there. For tests and for shutdown. */
export function setDatabase(next: OpenDatabase | undefined): OpenDatabase | undefined {
  const before = shared.__sluiceDatabase;
  shared.__sluiceDatabase = next;
  return before;
}
