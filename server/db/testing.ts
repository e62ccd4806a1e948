/**
 * Tests run on a real PostgreSQL: one server per run (server/db/testing-global-setup.ts), and one migrated database
 * per test file, copied from the run's template. A file whose tests each need an empty database calls
 * `resetTestDatabase` between them, which takes a millisecond or two where a new database takes 20 to 200.
 */
import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { type OpenDatabase, openDatabase, setDatabase } from "#server/db/client.ts";
import { connect } from "#server/db/connect.ts";

/** Where the test server's address is handed to the test processes. */
export const TEST_DATABASE_VARIABLE = "SLUICE_TEST_DATABASE_URL";
export const TEMPLATE_DATABASE = "sluice_template";
/** In the template, and so in every test database. */
const RESET_SCHEMA = "testing";
const RESET_FUNCTION = `${RESET_SCHEMA}.reset`;

export type TestDatabase = OpenDatabase & { url: string; drop: () => Promise<void> };

/** A migrated, empty database. Call `drop` in `afterAll`. */
export async function createTestDatabase(options: { max?: number } = {}): Promise<TestDatabase> {
  const admin = process.env[TEST_DATABASE_VARIABLE];
  if (admin === undefined) {
    throw new Error("No test database: vitest's globalSetup must hold server/db/testing-global-setup.ts.");
  }
  const name = `test_${randomBytes(6).toString("hex")}`;
  await withAdmin(admin, (sql) => createFromTemplate(sql, name));
  const url = new URL(admin);
  url.pathname = `/${name}`;
  const opened = openDatabase(url.href, { max: options.max ?? 5 });
  return {
    ...opened,
    url: url.href,
    drop: async () => {
      await opened.close();
      await withAdmin(admin, (sql) => sql.unsafe(`drop database if exists ${name} with (force)`));
    },
  };
}

/** Makes a test database the process's own (what `database()` returns), for tests of handlers. */
export async function useTestDatabase(options: { max?: number } = {}): Promise<TestDatabase> {
  const test = await createTestDatabase(options);
  const before = setDatabase(test);
  return {
    ...test,
    drop: async () => {
      setDatabase(before);
      await test.drop();
    },
  };
}

/** PostgreSQL's code for a deadlock. */
const DEADLOCK = "40P01";

/**
 * Brings every table back to the rows it had after the migrations. Sequences go on counting. A loop of the code under
 * test may still be writing: where its locks and the reset's cross, the reset begins again.
 */
export async function resetTestDatabase({ sql }: Pick<OpenDatabase, "sql">): Promise<void> {
  for (;;) {
    try {
      await sql.unsafe(`select ${RESET_FUNCTION}()`);
      return;
    } catch (error) {
      if (!(error instanceof postgres.PostgresError && error.code === DEADLOCK)) throw error;
    }
  }
}

async function createFromTemplate(sql: postgres.Sql, name: string): Promise<void> {
  // PostgreSQL copies one template at a time; files that start together wait for one another.
  await sql`select pg_advisory_lock(7411002)`;
  // The default strategy writes the whole copy to the write-ahead log: three times the time of copying the files.
  await sql.unsafe(`create database ${name} template ${TEMPLATE_DATABASE} strategy file_copy`);
}

/** Makes `reset` in the migrated template: copies of the rows that migrations wrote, and the function itself. */
export async function prepareReset(sql: postgres.Sql): Promise<void> {
  const rows = await sql<{ name: string }[]>`select tablename as name from pg_tables where schemaname = 'public'`;
  const tables = rows.map(({ name }) => `"${name}"`);
  await sql.unsafe(`create schema ${RESET_SCHEMA}`);
  const filled: string[] = [];
  for (const table of tables) {
    const [row] = await sql.unsafe(`select from public.${table} limit 1`);
    if (row === undefined) continue;
    await sql.unsafe(`create table ${RESET_SCHEMA}.${table} as table public.${table}`);
    filled.push(table);
  }
  // Append-only tables refuse a replica's changes too.
  const always = await sql<{ table: string; trigger: string }[]>`
    select tgrelid::regclass::text as table, quote_ident(tgname) as trigger from pg_trigger where tgenabled = 'A'`;
  const guarded = (table: string) => always.filter((one) => `"${one.table}"` === table).map(({ trigger }) => trigger);
  const empty = (table: string) => {
    const triggers = guarded(table);
    if (triggers.length === 0) return `delete from public.${table};`;
    const alter = (how: string) =>
      triggers.map((name) => `alter table public.${table} ${how} trigger ${name};`).join(" ");
    return `if exists (select from public.${table}) then
      ${alter("disable")} delete from public.${table}; ${alter("enable always")} end if;`;
  };
  const statements = [
    ...tables.map(empty),
    ...filled.map((table) => `insert into public.${table} select * from ${RESET_SCHEMA}.${table};`),
  ];
  // A replica applies changes without the triggers of foreign keys, so the order of the tables does not matter. Of two
  // transactions in a deadlock the one with the shorter timeout is ended, which is never that of the code under test.
  await sql.unsafe(
    `create function ${RESET_FUNCTION}() returns void language plpgsql
     set session_replication_role = replica set deadlock_timeout = '10ms' as $$ begin ${statements.join("\n")} end $$`,
  );
}

async function withAdmin<T>(url: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = connect(url, { max: 1, onnotice: () => undefined });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
