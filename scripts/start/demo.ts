/**
 * `npm start -- --demo`: the portal alone, on sample data in a database of its own, so that nothing of them can ever
 * stand among an installation's records. They go when somebody removes them on a page.
 */
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { letWait, letWork } from "#scripts/demo/alive.ts";
import { FULL, seed } from "#scripts/demo/seed.ts";
import { buildPortal } from "#scripts/start/builds.ts";
import { type Ports, processEnvironment } from "#scripts/start/config.ts";
import type { HeldSockets } from "#scripts/start/held-sockets.ts";
import { services } from "#scripts/start/services.ts";
import { announce } from "#scripts/start/setup.ts";
import { Steps } from "#scripts/start/steps.ts";
import { startRounds } from "#server/broker/rounds.ts";
import { systemContext } from "#server/context.ts";
import { type OpenDatabase, openDatabase } from "#server/db/client.ts";
import { startEmbeddedPostgres } from "#server/db/embedded.ts";
import { migrateDatabase } from "#server/db/migrate.ts";
import { resetEnv } from "#server/env.ts";
import { createLive } from "#server/live.ts";
import { logger } from "#server/log.ts";
import { SAMPLE_DATA } from "#server/services/sample-data/remove.ts";
import { rollUp } from "#server/services/utilisation/roll-up.ts";

/** What runs and has to be stopped, the last one first. */
type Ends = { name: string; stop: () => Promise<void> }[];

type DemoOptions = {
  root: string;
  stateDir: string;
  ports: Ports;
  sockets: HeldSockets;
  ends: Ends;
  onRestart: (reason: string) => void;
};

/** Shows sample data until they are removed; then everything that it made is gone. */
export async function showDemo(options: DemoOptions): Promise<void> {
  const { root, stateDir, ports, sockets, ends, onRestart } = options;
  const folder = path.join(stateDir, "demo");
  const before = { ...process.env };
  // What is held "now" was held when it was made.
  await rm(folder, { recursive: true, force: true });
  await mkdir(path.join(folder, "logs"), { recursive: true, mode: 0o700 });
  const steps = new Steps({ database: "Database", portal: "Portal", sample: "Sample data: 1,000 GPUs and 90 days" });
  const url = await steps.run("database", async () => {
    const server = await startEmbeddedPostgres(folder, { onRestart });
    ends.unshift({ name: "PostgreSQL", stop: server.stop });
    await migrateDatabase(server.url);
    return server.url;
  });
  const env: NodeJS.ProcessEnv = { ...processEnvironment(folder, ports, url), SLUICE_SAMPLE_DATA: "1" };
  Object.assign(process.env, env);
  resetEnv();
  const database = openDatabase(url, { max: 3, applicationName: "sluice demo" });
  ends.unshift({ name: "connection", stop: database.close });
  await steps.persistTo(database.db, "database");
  await steps.run("portal", async (onLine) => {
    await buildPortal(root, env, onLine);
    ends.unshift(await services({ root, stateDir: folder, ports, sockets, env, onRestart }).portal());
  });
  // Heard from the first page on, while they are still being written.
  const removed = removal(database);
  await announce(database.db, env.SLUICE_PORTAL_URL ?? "");
  await steps.run("sample", (onLine) => fill(database, onLine));
  ends.unshift({ name: "sample work", ...keepAtWork(database) });
  console.log("\n  The pages are full. Remove the sample data on any of them, or end with Ctrl-C.\n");
  await removed;
  for (const end of ends.splice(0)) await end.stop();
  await rm(folder, { recursive: true, force: true });
  process.env = before;
  resetEnv();
  console.log("\n  The sample data are gone. Your own installation starts at the same address.\n");
}

async function fill({ db }: OpenDatabase, onLine: (line: string) => void): Promise<void> {
  onLine("Writing servers, people and leases");
  await seed(db, FULL);
  onLine("Adding up 90 days of use");
  while (await rollUp(systemContext(db)));
  await letWait(db);
}

/** So often what is held does something: pages show the last minute's work. */
const WORKS_S = 15;

/** Keeps the pool at work until it is stopped. */
function keepAtWork({ db }: OpenDatabase): { stop: () => Promise<void> } {
  const rounds = startRounds(WORKS_S * 1000, async () => {
    await letWork(db, WORKS_S).catch((error: unknown) => logger("demo").warn({ err: error }, "nothing could work"));
  });
  return { stop: rounds.stop };
}

/** Settles when a page has asked for it. */
async function removal({ sql }: OpenDatabase): Promise<void> {
  const live = createLive(sql);
  await live.ready();
  await new Promise<void>((resolve) => {
    live.subscribe(["setup"], ({ id }) => {
      if (id === SAMPLE_DATA) resolve();
    });
  });
  await live.close();
}
