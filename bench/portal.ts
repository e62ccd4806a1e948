/**
 * The portal on a large installation: 1,000 devices, 500 people, 2,000 workspaces and 90 days of leases and samples in
 * the database, rolled up as the broker does, with a queue, an audit and all that busy people leave behind. Times are
 * those of an admin who leads a team and waits for a GPU, who sees all of it: each page and each question about use is
 * asked one after the other, until the last byte. With a hundred open pages of members, each as its browser keeps it up
 * to date, somebody is granted a GPU twice a second.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { eq, sql } from "drizzle-orm";
import { FULL, seed } from "#scripts/demo/seed.ts";
import type { Service } from "#scripts/lib/processes.ts";
import { buildPortal } from "#scripts/start/builds.ts";
import { systemContext } from "#server/context.ts";
import { type Database, openDatabase } from "#server/db/client.ts";
import { startEmbeddedPostgres } from "#server/db/embedded.ts";
import { migrateDatabase } from "#server/db/migrate.ts";
import { gpuServers, imageVersions, setupSteps, workspaces } from "#server/db/schema/index.ts";
import { freePort } from "#server/free-port.ts";
import { notify } from "#server/live.ts";
import { prepare } from "#server/services/setup/prepare.ts";
import { rollUp } from "#server/services/utilisation/roll-up.ts";
import { makeAsker, makeBusy } from "./portal/busy.ts";
import { collectGarbage } from "./portal/collect.ts";
import { asker, p95, scriptBytes } from "./portal/pages.ts";
import { startPortal } from "./portal/start.ts";
import { measureStreams } from "./portal/streams.ts";
import { cookiesOf, measureTabs } from "./portal/tabs.ts";

const ROUNDS = 20;
const STREAMS = 1000;
/** So many servers are open on the pool's page. */
const OPENED = 8;

export const targets = {
  ...{ page_p95_ms: "<= 200", utilisation_p95_ms: "<= 300", first_load_js_kb: "<= 200" },
  ...{ streams_mb: "<= 200", update_ms: "<= 1000" },
  ...{ grant_renders: "<= 5", grant_cpu_ms: "<= 200", grant_seen_ms: "<= 1000" },
};

export async function run(): Promise<{ metrics: Record<string, number> }> {
  const root = path.resolve(import.meta.dirname, "..");
  await buildPortal(root, { ...process.env, NODE_ENV: "production" }, (line) => console.log(`  ${line}`));
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-portal-"));
  // Keys of this process and of the portal are the same ones.
  process.env.SLUICE_STATE_DIR = folder;
  const server = await startEmbeddedPostgres(folder);
  await migrateDatabase(server.url);
  const database = openDatabase(server.url);
  let portal: Service | undefined;
  try {
    const rolling = await fill(database.db);
    const admin = await makeAsker(database.db);
    const { whatIf } = await makeBusy(database.db, admin);
    await database.db.execute(sql`vacuum analyze`);
    const port = await freePort();
    const inspector = await freePort();
    const node = [`--inspect=127.0.0.1:${inspector}`];
    portal = await startPortal(root, { stateDir: folder, databaseUrl: server.url, port, node });
    const url = `http://127.0.0.1:${port}`;
    const ask = asker(url, admin.cookie);
    // First, while the portal has handed no memory of other work back.
    const streams = await measureStreams({
      ...{ url, cookies: await cookiesOf(database.db, STREAMS / 25), count: STREAMS, pid: portal.pid() ?? 0 },
      collect: () => collectGarbage(inspector),
      update: () => notify(database.db, "workspace", "any"),
    });
    const tabs = await measureTabs({ url, db: database.db, pid: portal.pid() ?? 0 });
    const pages = await measurePages(ask, await pagePaths(database.db, whatIf));
    const use = await measureUse(ask);
    return { metrics: { ...pages, ...use, ...streams, ...tabs, roll_up_s: rolling } };
  } finally {
    await portal?.stop();
    await database.close();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Seconds that the roll-up of all days took. */
async function fill(db: Database): Promise<number> {
  const began = performance.now();
  await prepare(systemContext(db));
  await db.insert(setupSteps).values({ id: "portal", title: "Portal", state: "done" });
  await seed(db, FULL);
  const seeded = performance.now();
  console.log(`  seeded in ${Math.round((seeded - began) / 1000)} s`);
  while (await rollUp(systemContext(db)));
  return (performance.now() - seeded) / 1000;
}

/** Every page that an admin can open, each once. */
async function pagePaths(db: Database, whatIf: string): Promise<string[]> {
  const [one] = await db.select({ id: workspaces.id }).from(workspaces).where(eq(workspaces.name, "mine-1"));
  const [image] = await db.select({ id: imageVersions.id }).from(imageVersions).limit(1);
  const opened = await db.select({ id: gpuServers.id }).from(gpuServers).orderBy(gpuServers.name).limit(OPENED);
  const tabs = ["", "/gpu", "/log", "/notebooks", "/people", "/settings"];
  return [
    ...["/workspaces", "/workspaces/new", ...tabs.map((tab) => `/workspaces/${one?.id}${tab}`)],
    ...["/gpus", "/gpus/works-here", "/teams", "/teams/team-1", "/calendars", "/policies", "/datasets", "/tour"],
    ...["/environments", `/environments/${image?.id}`, "/sizes", "/people", "/audit", "/health", "/settings"],
    ...["/pool", "/queue", `/pool?open=${opened.map(({ id }) => id).join(",")}`, "/what-if", `/what-if?run=${whatIf}`],
    ...["team", "person", "workspace"].flatMap((by) => [`/usage?by=${by}`, `/costs?by=${by}`, `/gpu-audit?by=${by}`]),
  ];
}

async function measurePages(ask: ReturnType<typeof asker>, paths: string[]): Promise<Record<string, number>> {
  let [slowest, heaviest] = [0, 0];
  const known = new Map<string, number>();
  const times: { name: string; ms: number }[] = [];
  for (const each of paths) {
    const { status, body } = await ask(each);
    if (status !== 200) throw new Error(`${each} answered ${status}`);
    const html = (body[0] === 0x1f ? gunzipSync(body) : body).toString();
    const script = (await scriptBytes(ask, html, known)) / 1024;
    const ms = await p95(ask, each, ROUNDS);
    const name = each.replace(/\b[a-z]{2,3}-[a-z2-7]{26}(,\S*)?/, "{id}");
    times.push({ name, ms });
    console.log(
      `  ${name.padEnd(28)} ${ms.toFixed(0).padStart(6)} ms ` +
        `${script.toFixed(0).padStart(5)} kB script ${(html.length / 1024).toFixed(0).padStart(6)} kB page`,
    );
    slowest = Math.max(slowest, ms);
    heaviest = Math.max(heaviest, script);
  }
  const worst = times.sort((a, b) => b.ms - a.ms).slice(0, 5);
  console.log(`  slowest: ${worst.map(({ name, ms }) => `${name} ${ms.toFixed(0)} ms`).join(", ")}`);
  return { page_p95_ms: slowest, first_load_js_kb: heaviest };
}

/** Whole days, as the page asks: a day, a week, a month and all of it, split each way. */
async function measureUse(ask: ReturnType<typeof asker>): Promise<Record<string, number>> {
  let slowest = 0;
  const today = Math.floor(Date.now() / 86_400_000) * 86_400_000;
  for (const days of [1, 7, 30, 90]) {
    for (const by of ["team", "person", "workspace", "type"]) {
      const from = new Date(today - (days - 1) * 86_400_000).toISOString();
      const ms = await p95(ask, `/api/v1/utilisation?from=${from}&by=${by}`, ROUNDS);
      console.log(`  ${`${days} days by ${by}`.padEnd(28)} ${ms.toFixed(0).padStart(6)} ms`);
      slowest = Math.max(slowest, ms);
    }
  }
  return { utilisation_p95_ms: slowest };
}
