/**
 * Tests run on a real PostgreSQL: one server a run (server/db/testing-global-setup.ts), and one migrated database
 * of its own for each test file, copied from a template.
 */
import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { type OpenDatabase, openDatabase, setDatabase } from "#server/db/client.ts";

/** Where the test server's address is handed to the test processes. */
export const TEST_DATABASE_VARIABLE = "SLUICE_TEST_DATABASE_URL";
export const TEMPLATE_DATABASE = "sluice_template";

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

async function createFromTemplate(sql: postgres.Sql, name: string): Promise<void> {
  // PostgreSQL copies one template at a time; files that start together wait for one another.
  await sql`select pg_advisory_lock(7411002)`;
  await sql.unsafe(`create database ${name} template ${TEMPLATE_DATABASE}`);
}

async function withAdmin<T>(url: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
