/**
 * `npm start`: brings a whole installation up on this machine and keeps it up. The portal opens as soon as it is
 * built; the Rust build, the environment and the software GPU go on as steps on its first page. Ctrl-C drains and
 * stops everything but the running workspaces; the next start finds those again.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { buildNative, buildPortal, buildWheel } from "#scripts/start/builds.ts";
import { holdChosenPorts, processEnvironment } from "#scripts/start/config.ts";
import { showDemo } from "#scripts/start/demo.ts";
import { services } from "#scripts/start/services.ts";
import { announce, makeJoinToken } from "#scripts/start/setup.ts";
import { Steps } from "#scripts/start/steps.ts";
import { takeStateDir } from "#scripts/start/take-state-dir.ts";
import { openDatabase } from "#server/db/client.ts";
import { startEmbeddedPostgres } from "#server/db/embedded.ts";
import { migrateDatabase } from "#server/db/migrate.ts";
import { readEnv } from "#server/env.ts";
import { ensureEnvironment, environmentState, prepareEnvironment } from "#server/launchers/local/environment.ts";
import { keepOutput } from "#server/output.ts";

keepOutput();
const started = Number(process.env.SLUICE_STARTED_AT ?? Date.now());
const root = process.cwd();
const stateDir = path.resolve(process.env.SLUICE_STATE_DIR ?? path.join(root, ".sluice"));
const giveBack = await takeStateDir(stateDir, { say: (line) => console.log(`  !  ${line}`) });

const STEPS = {
  database: "Database",
  portal: "Portal",
  native: "GPU server and client (Rust build)",
  packages: "Python packages",
  environment: "Environment CUDA Python",
  gpud: "Software GPU",
} as const;

/** What to stop, in this order, when the installation ends. */
const ends: { name: string; stop: () => Promise<void> }[] = [];
let stopping = false;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void shutDown(0));

const onRestart = (reason: string) => console.log(`  !  ${reason}; starting it again`);

try {
  // First, so that a wrong setting or an occupied port fails before any build.
  readEnv();
  const held = await holdChosenPorts(stateDir);
  if (process.argv.includes("--demo")) await showDemo({ root, stateDir, ends, onRestart, ...held });
  await bringUp(held);
} catch (error) {
  if (!stopping) {
    console.error(error instanceof Error ? error.message : error);
    await shutDown(1);
  }
}

async function bringUp({ ports, sockets }: Awaited<ReturnType<typeof holdChosenPorts>>): Promise<void> {
  const steps = new Steps(STEPS);
  const databaseUrl = await steps.run("database", async () => {
    const given = process.env.DATABASE_URL;
    if (given === undefined) {
      const embedded = await startEmbeddedPostgres(stateDir, { onRestart });
      ends.push({ name: "PostgreSQL", stop: embedded.stop });
      await migrateDatabase(embedded.url);
      return embedded.url;
    }
    await migrateDatabase(given);
    return given;
  });

  const env = processEnvironment(stateDir, ports, databaseUrl);
  Object.assign(process.env, env);
  const { db, close } = openDatabase(databaseUrl, { max: 3, applicationName: "sluice start" });
  ends.unshift({ name: "connection", stop: close });
  await steps.persistTo(db, "database");

  const up = services({ root, stateDir, ports, sockets, env, onRestart });
  const start = async (name: keyof typeof up) => {
    const service = await up[name]();
    ends.unshift(service);
  };

  // The portal first: people see the other steps on its first page.
  const native = steps.run("native", (onLine) => buildNative(root, onLine));
  native.catch(() => undefined);
  await Promise.all([
    start("broker"),
    start("gateway"),
    start("egress"),
    steps.run("portal", async (onLine) => {
      await buildPortal(root, env, onLine);
      await start("portal");
    }),
  ]);
  await announce(db, env.SLUICE_PORTAL_URL ?? "");

  try {
    // A failure here is told by the environment's own step, which tries again.
    await Promise.all([native, preparePackages(steps).catch(() => undefined)]);
    await Promise.all([
      steps.run("gpud", async () => {
        const joined = existsSync(path.join(stateDir, "gpud", "server.json"));
        env.SLUICE_JOIN_TOKEN = joined ? "" : await makeJoinToken(db);
        await start("gpud");
      }),
      steps.run("environment", async (onLine) => {
        const wheel = await buildWheel(root, stateDir, onLine);
        await ensureEnvironment("cuda-python", { stateDir, wheel, onLine });
      }),
    ]);
  } catch {
    // The step that failed said why, here and on the first page; what is up stays up.
    if (!stopping) console.log("\n  Not everything could be started. Mend what is named above and start again.\n");
    return;
  }
  console.log(
    `\n  Ready after ${((Date.now() - started) / 1000).toFixed(1)} s. Ctrl-C stops everything but running workspaces.\n`,
  );
}

/** On a first start, the environment's packages are installed beside the Rust build, which takes longer. */
async function preparePackages(steps: Steps<keyof typeof STEPS>): Promise<void> {
  await steps.run("packages", async (onLine) => {
    const { state } = await environmentState(stateDir, "cuda-python");
    if (state !== "ready") await prepareEnvironment("cuda-python", { stateDir, onLine });
  });
}

async function shutDown(code: number): Promise<void> {
  if (stopping) return;
  stopping = true;
  if (code === 0) console.log("\n  Stopping: leases are given back, running workspaces stay.");
  for (const end of ends) {
    try {
      await end.stop();
    } catch (error) {
      console.error(`  !  ${end.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  await giveBack();
  process.exit(code);
}
