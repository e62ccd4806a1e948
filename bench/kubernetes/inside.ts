/** What `npm run bench -- kubernetes` runs inside the cluster's network; the last line is `{"metrics": …}`. */
import { type ChildProcess, spawn } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { KubernetesObject } from "@kubernetes/client-node";
import { openDatabase, setDatabase } from "#server/db/client.ts";
import { startEmbeddedPostgres } from "#server/db/embedded.ts";
import { migrateDatabase } from "#server/db/migrate.ts";
import { KubernetesLauncher } from "#server/launchers/kubernetes/kubernetes-launcher.ts";
import { makeVolumes, smallSettings, startInstallation, testCluster } from "#server/launchers/kubernetes/testing.ts";
import { aWorkspaceSpec } from "#server/launchers/testing.ts";
import { remove } from "#server/services/workspace/remove.ts";

const ONE_BY_ONE = 5;
const AT_ONCE = 20;
const IDLE_MS = 60_000;
const MANY = 500;
/** So many of them are being made at one time. */
const MAKERS = 16;
const NODES = 10;

const cluster = testCluster();
const [kwok = "", stages = ""] = process.argv.slice(2);

/** Requests to the API server, watches aside. */
let requests = 0;
subscribe("undici:request:create", (message) => {
  const { request } = message as { request: { origin?: string; path: string } };
  if (request.origin?.includes(":6443") === true && !/[?&]watch=/.test(request.path)) requests += 1;
});

const settings = (prefix: string, placed: object) =>
  smallSettings(cluster, prefix, {
    sizes: {
      small: { cpu: { request: "50m", limit: "2" }, memory: { request: "128Mi", limit: "2Gi" }, ...placed },
    },
  });

const folder = await mkdtemp(path.join(tmpdir(), "sluice-bench-kubernetes-"));
process.env.SLUICE_STATE_DIR = folder;
const server = await startEmbeddedPostgres(folder);
try {
  const launches = await measureLaunches();
  const scale = await measureScale();
  console.log(JSON.stringify({ metrics: { ...launches, ...scale } }));
} finally {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
process.exit(0);

async function measureLaunches(): Promise<Record<string, number>> {
  await migrateDatabase(server.url);
  const opened = openDatabase(server.url, { max: 10 });
  setDatabase(opened);
  const database = { ...opened, url: server.url, drop: async () => await opened.close() };
  const installation = await startInstallation(database, cluster, {
    settings: settings("bench", {}),
    homes: ONE_BY_ONE + AT_ONCE,
  });
  const { launch, observed, world } = installation;
  const seconds = async (name: string) => {
    const began = performance.now();
    const id = await launch(name);
    await observed(id, "running$", 600_000);
    return { id, seconds: (performance.now() - began) / 1000 };
  };
  try {
    const single: number[] = [];
    for (let index = 0; index < ONE_BY_ONE; index++) {
      const one = await seconds(`single ${index}`);
      single.push(one.seconds);
      await remove(world.member.ctx, { id: one.id });
      await observed(one.id, "removed");
    }
    const burst = await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, index) => await seconds(`burst ${index}`)),
    );
    await sleep(5_000);
    const before = requests;
    await sleep(IDLE_MS);
    const hourly = ((requests - before) / AT_ONCE) * (3_600_000 / IDLE_MS);
    return {
      p50_s: rank(single, 0.5),
      burst20_p95_s: rank(
        burst.map((one) => one.seconds),
        0.95,
      ),
      requests_per_workspace_hour: hourly,
    };
  } finally {
    await installation.stop();
  }
}

async function measureScale(): Promise<Record<string, number>> {
  const nodes = await imitateNodes();
  const dropVolumes = await makeVolumes(cluster, MANY);
  const many = settings("scale", {
    nodeSelector: { "sluice.dev/imitated": "true" },
    tolerations: [{ key: "kwok.x-k8s.io/node", operator: "Exists", effect: "NoSchedule" }],
  });
  const launcher = new KubernetesLauncher(many);
  const specs = Array.from({ length: MANY }, () => aWorkspaceSpec());
  try {
    const began = performance.now();
    const waiting = [...specs];
    const signal = new AbortController().signal;
    const silent = { started: () => undefined, done: () => undefined, log: () => undefined };
    await Promise.all(
      Array.from({ length: MAKERS }, async () => {
        for (let next = waiting.pop(); next !== undefined; next = waiting.pop())
          await launcher.ensure(next, silent, signal).catch((error: unknown) => console.log(String(error)));
      }),
    );
    const took = (performance.now() - began) / 1000;
    const megabytes = process.memoryUsage.rss() / 1e6;
    // As after a broker's replacement: what runs is read from the cluster.
    const next = new KubernetesLauncher(many);
    const seen = await Promise.all(specs.map(async ({ id }) => await next.observe(id)));
    await next.close();
    const lost = seen.filter(({ state }) => state !== "running").length;
    return { scale500_s: took, scale500_lost: lost, broker_mb: megabytes };
  } finally {
    await launcher.close();
    nodes.kill();
    await dropVolumes();
  }
}

async function imitateNodes(): Promise<ChildProcess> {
  const chosen = ["--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"];
  const child = spawn(kwok, ["--kubeconfig", cluster.kubeconfig, "--config", stages, ...chosen], { stdio: "ignore" });
  const amounts = { cpu: "64", memory: "512Gi", pods: "110" };
  for (let index = 0; index < NODES; index++) {
    const node: KubernetesObject & Record<string, unknown> = {
      apiVersion: "v1",
      kind: "Node",
      metadata: {
        name: `imitated-${index}`,
        annotations: { "kwok.x-k8s.io/node": "fake" },
        labels: { "kubernetes.io/os": "linux", "sluice.dev/imitated": "true" },
      },
      spec: { taints: [{ key: "kwok.x-k8s.io/node", value: "fake", effect: "NoSchedule" }] },
      status: { allocatable: amounts, capacity: amounts },
    };
    await cluster.objects.create(node);
  }
  return child;
}

function rank(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}
