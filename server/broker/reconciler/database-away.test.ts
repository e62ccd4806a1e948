import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type OpenDatabase, openDatabase } from "#server/db/client.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "#server/db/embedded.ts";
import { migrateDatabase } from "#server/db/migrate.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { resetEnv } from "#server/env.ts";
import { LocalLauncher, prepareStateDir } from "#server/launchers/local/local-launcher.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { type Reconciler, startReconciler } from "./reconciler.ts";

let folder: string;
let postgres: EmbeddedPostgres;
let database: OpenDatabase;
let reconciler: Reconciler;
let world: World;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-reconciler-pg-"));
  process.env.SLUICE_STATE_DIR = folder;
  resetEnv();
  postgres = await startEmbeddedPostgres(folder, { settings: { fsync: "off" } });
  await migrateDatabase(postgres.url);
  database = openDatabase(postgres.url);
  world = await makeWorld(database.db);
  await prepareStateDir(folder);
  const launcher = new LocalLauncher({ stateDir: folder, wheel: undefined });
  reconciler = await startReconciler(database, { launchers: new Map([["local", launcher]]) });
});

afterAll(async () => {
  await reconciler.stop();
  await database.close();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

/** A workspace whose end is wanted: the reconciler alone brings it to `stopped`. */
async function becomesStopped(): Promise<void> {
  const { id } = await makeWorkspace(world, { owner: world.member });
  await database.db.update(workspaces).set({ desired: "stopped", observed: "stopping" }).where(eq(workspaces.id, id));
  const observed = async () => (await database.db.select().from(workspaces).where(eq(workspaces.id, id)))[0]?.observed;
  await expect.poll(observed, { timeout: 20_000, interval: 25 }).toBe("stopped");
}

it("goes on by itself after PostgreSQL was away, and holds its lock again", async () => {
  await becomesStopped();
  await postgres.stop();
  // Longer than the interval of the reconciler.
  await sleep(2_500);
  postgres = await startEmbeddedPostgres(folder, { settings: { fsync: "off" } });
  await becomesStopped();
  const locks = await database.sql`select count(*)::int as held from pg_locks where locktype = 'advisory' and granted`;
  expect(locks[0]?.held).toBe(1);
}, 60_000);
