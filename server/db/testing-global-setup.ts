/** Vitest's globalSetup: starts one PostgreSQL for the run and prepares the migrated template database. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect } from "#server/db/connect.ts";
import { startEmbeddedPostgres } from "#server/db/embedded.ts";
import { migrateDatabase } from "#server/db/migrate.ts";
import { prepareReset, TEMPLATE_DATABASE, TEST_DATABASE_VARIABLE } from "#server/db/testing.ts";

export default async function setup(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-test-pg-"));
  const server = await startEmbeddedPostgres(folder, {
    // Nothing of a test run has to survive a power cut.
    settings: { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_connections: "200" },
  });
  const sql = connect(server.url, { max: 1, onnotice: () => undefined });
  await sql.unsafe(`create database ${TEMPLATE_DATABASE}`);
  await sql.end();
  const template = new URL(server.url);
  template.pathname = `/${TEMPLATE_DATABASE}`;
  await migrateDatabase(template.href);
  const migrated = connect(template.href, { max: 1 });
  await prepareReset(migrated);
  await migrated.end();
  process.env[TEST_DATABASE_VARIABLE] = server.url;
  // Keys that tests make lie beside it, not in the state of an installation that runs from this folder.
  process.env.SLUICE_STATE_DIR = path.join(folder, "state");
  return async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
}
