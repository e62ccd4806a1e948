/**
 * What is done once before the processes of an installation start, where no `npm start` does it:
 *
 *   node server/install/main.ts prepare   migrates the database, fills the catalogue, makes the first admin or prints
 *                                         the set-up link
 *   node server/install/main.ts wait      ends as soon as that was done by this version
 */
import { setTimeout as sleep } from "node:timers/promises";
import { systemContext } from "#server/context.ts";
import { openDatabase } from "#server/db/client.ts";
import { checkSchema, migrateDatabase } from "#server/db/migrate.ts";
import { databaseUrl } from "#server/env.ts";
import { prepare } from "#server/services/setup/prepare.ts";

/** So long the database may take to come up, and the other one to prepare it. */
const LIMIT_MS = 600_000;
const PAUSE_MS = 1_000;

const commands: Record<string, () => Promise<void>> = {
  async prepare() {
    await retry("the database", () => migrateDatabase(databaseUrl()));
    await withDatabase(async (database) => {
      const prepared = await prepare(systemContext(database.db));
      if (prepared.state === "link") console.log(`Set-up link ${prepared.link}   (once, for 24 hours)`);
      else if (prepared.passwordLink) console.log(`New password ${prepared.passwordLink.link}   (once, for 24 hours)`);
      else console.log("The database is up to date.");
    });
  },
  async wait() {
    await retry("the database and its migration", () => withDatabase(({ sql }) => checkSchema(sql)));
  },
};

const command = commands[process.argv[2] ?? ""];
if (command === undefined) {
  console.error(`Usage: node server/install/main.ts ${Object.keys(commands).join("|")}`);
  process.exit(2);
}
await command().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});

async function withDatabase(work: (database: ReturnType<typeof openDatabase>) => Promise<void>): Promise<void> {
  const database = openDatabase(databaseUrl(), { max: 1, applicationName: "sluice-install" });
  try {
    await work(database);
  } finally {
    await database.close();
  }
}

/** Tries until it works; what it said last is told when the limit is over, and each time that it changes. */
async function retry(what: string, work: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + LIMIT_MS;
  for (let said = ""; ; await sleep(PAUSE_MS)) {
    try {
      await work();
      return;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (performance.now() > deadline) throw new Error(`Waited in vain for ${what}: ${message}`);
      if (message !== said) console.log(`Waiting for ${what}: ${message}`);
      said = message;
    }
  }
}
