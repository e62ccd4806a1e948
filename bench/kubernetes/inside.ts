/**
 * What `npm run bench -- kubernetes` runs inside the cluster's network; the last line is `{"metrics": …}`.
 *
 * `requests_per_workspace_hour` is what the broker, which is this process, asks the API server for while workspaces run
 * and nobody wants anything of them: reconciler, launcher and cluster watch, counted for `IDLE_MS` and taken for an hour,
 * and the look for orphans of each hour, one of which is counted by itself. Watches are not counted: there are as many
 * of them however many workspaces run, and a quiet one is begun anew every half minute. The list that is asked for when
 * a watch has lost its place is counted.
 */
import { subscribe } from "node:diagnostics_channel";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startClusterWatch } from "#server/broker/cluster/cluster-watch.ts";
import { lookForOrphans } from "#server/broker/reconciler/orphans.ts";
import { ORPHANS_MS } from "#server/broker/reconciler/reconciler.ts";
import { openDatabase, setDatabase } from "#server/db/client.ts";
import { startEmbeddedPostgres } from "#server/db/embedded.ts";
import { migrateDatabase } from "#server/db/migrate.ts";
import { freePort } from "#server/free-port.ts";
import type { KubernetesSettings, KubernetesSettingsInput } from "#server/launchers/kubernetes/settings.ts";
import {
  type Installation,
  SMALL,
  smallSettings,
  startInstallation,
  testCluster,
} from "#server/launchers/kubernetes/testing.ts";
import { createLive } from "#server/live.ts";
import { logger } from "#server/log.ts";
import { deleteFiles } from "#server/services/workspace/delete-files.ts";
import { remove } from "#server/services/workspace/remove.ts";
import { startPortal } from "../portal/start.ts";
import { type Browser, openBrowser } from "./browser.ts";
import { IMITATED, imitateNodes } from "./imitated.ts";

const ONE_BY_ONE = 5;
const AT_ONCE = 20;
/** Some rounds of whatever asks once a minute; and one request by chance is 0.6 per workspace and hour, and not 3. */
const IDLE_MS = 300_000;
const HOUR_MS = 3_600_000;
const MANY = 500;
/** So many of them are being launched at one time. */
const CLICKING = 16;
/** Those that do not run by then are lost. */
const MANY_MS = 600_000;

const root = path.resolve(import.meta.dirname, "../..");
const cluster = testCluster();
const GPUD_NAMESPACE = "sluice";
/** With these the broker follows what it does beside the chart: borrowing pods, nodes, and gpuds, of which there are none. */
const followed: Partial<KubernetesSettingsInput> = {
  pods: { image: cluster.clientImage, pull: "Never" },
  gpuServers: { namespace: GPUD_NAMESPACE, account: "sluice-gpud", daemonSet: "sluice-gpud" },
};
const [program = "", stages = ""] = process.argv.slice(2);

/** Requests to the API server, watches aside, and what is watched there. */
let requests = 0;
const watched = new Set<string>();
subscribe("undici:request:create", (message) => {
  const { request } = message as { request: { origin?: string; path: string } };
  if (request.origin?.includes(":6443") !== true) return;
  if (/[?&]watch=/.test(request.path)) watched.add(request.path.replace(/\?.*/, ""));
  else requests += 1;
});

const folder = await mkdtemp(path.join(tmpdir(), "sluice-bench-kubernetes-"));
process.env.SLUICE_STATE_DIR = folder;
const server = await startEmbeddedPostgres(folder);
try {
  const small = { ...SMALL, cpu: { request: "50m", limit: "2" }, memory: { request: "128Mi", limit: "2Gi" } };
  const near = smallSettings(cluster, "bench", { ...followed, sizes: { small } });
  const launches = await withPortal("launches", near, 1 + ONE_BY_ONE + AT_ONCE, measureLaunches);
  const far = smallSettings(cluster, "scale", { ...followed, sizes: { small: { ...small, ...IMITATED } } });
  const scale = await withPortal("scale", far, MANY, measureScale);
  console.log(JSON.stringify({ metrics: { ...launches, ...scale } }));
} finally {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
process.exit(0);

type Measured = { installation: Installation; browser: Browser };

/** An installation with a database of its own: the portal is a program, the broker is this one. */
async function withPortal<T>(
  name: string,
  settings: KubernetesSettings,
  homes: number,
  measure: (measured: Measured) => Promise<T>,
): Promise<T> {
  const admin = openDatabase(server.url, { max: 1 });
  await admin.sql.unsafe(`create database ${name}`);
  await admin.close();
  const url = Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
  await migrateDatabase(url);
  const opened = openDatabase(url, { max: 20 });
  setDatabase(opened);
  const database = { ...opened, url, drop: async () => await opened.close() };
  const file = path.join(folder, `${name}.json`);
  await writeFile(file, JSON.stringify(settings));
  const installation = await startInstallation(database, cluster, { settings, homes });
  const live = createLive(database.sql);
  const watch = startClusterWatch({ database, live, log: logger("cluster"), settings });
  const port = await freePort();
  const env = { SLUICE_KUBERNETES_SETTINGS: file };
  const portal = await startPortal(root, { stateDir: folder, databaseUrl: url, port, env });
  const browser = await openBrowser(`http://127.0.0.1:${port}`, installation.world.member.cookie);
  try {
    return await measure({ installation, browser });
  } finally {
    browser.close();
    await portal.stop();
    await watch.stop();
    await live.close();
    await installation.stop();
  }
}

async function measureLaunches({ installation, browser }: Measured): Promise<Record<string, number>> {
  const { database, made, observed, world } = installation;
  const seconds = async (name: string) => {
    const began = performance.now();
    const id = await browser.launch(name);
    made.push(id);
    await browser.untilRunning(id);
    return { id, seconds: (performance.now() - began) / 1000 };
  };
  // The portal compiles nothing any more, and the node has read the image.
  await end((await seconds("warm-up")).id);
  const single: number[] = [];
  const atFirst = requests;
  for (let index = 0; index < ONE_BY_ONE; index++) {
    const one = await seconds(`single ${index}`);
    single.push(one.seconds);
    await end(one.id);
  }
  const burst = await Promise.all(Array.from({ length: AT_ONCE }, async (_, index) => await seconds(`burst ${index}`)));
  // A counter that hears of nothing would tell the best of figures.
  if (requests === atFirst)
    throw new Error(
      "Workspaces were launched and no request to the API server was counted: see what undici tells its subscribers.",
    );
  // The same of a cluster watch that goes on trying to begin; this it watches last, and nobody else does.
  const gpuds = `/api/v1/namespaces/${GPUD_NAMESPACE}/pods`;
  if (!watched.has(gpuds)) throw new Error(`The cluster watch does not watch ${gpuds}.`);
  await sleep(5_000);
  const before = requests;
  await sleep(IDLE_MS);
  const asked = requests - before;
  await lookForOrphans(database.db, new Map([["kubernetes", installation.launcher()]]), logger("reconciler"));
  const look = requests - before - asked;
  await Promise.all(burst.map(async ({ id }) => await end(id)));
  return {
    p50_s: rank(single, 0.5),
    burst20_p95_s: rank(
      burst.map((one) => one.seconds),
      0.95,
    ),
    requests_per_workspace_hour: (asked * (HOUR_MS / IDLE_MS) + look * (HOUR_MS / ORPHANS_MS)) / AT_ONCE,
  };

  async function end(id: string): Promise<void> {
    await remove(world.member.ctx, { id });
    await deleteFiles(world.member.ctx, { id });
    await observed(id, "removed");
  }
}

async function measureScale({ installation, browser }: Measured): Promise<Record<string, number>> {
  const stopImitating = await imitateNodes(cluster, { program, stages });
  try {
    const began = performance.now();
    const ids: string[] = [];
    await Promise.all(
      Array.from({ length: CLICKING }, async (_, first) => {
        for (let index = first; index < MANY; index += CLICKING) ids.push(await browser.launch(`imitated ${index}`));
      }),
    );
    const late = Date.now() + MANY_MS;
    const settled = async () => (await browser.count("running")) + (await browser.count("failed"));
    while ((await settled()) < MANY && Date.now() < late) await sleep(1_000);
    const took = (performance.now() - began) / 1000;
    const megabytes = process.memoryUsage.rss() / 1e6;
    // As after a broker's replacement: what runs is read from the cluster.
    await installation.restartReconciler();
    const seen = await Promise.all(ids.map(async (id) => await installation.launcher().observe(id)));
    await sleep(5_000);
    const observed = seen.filter(({ state }) => state === "running").length;
    const lost = MANY - Math.min(observed, await browser.count("running"));
    return { scale500_s: took, scale500_lost: lost, broker_mb: megabytes };
  } finally {
    await stopImitating();
  }
}

function rank(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}
