/** The chart upgraded under notebooks that compute: control plane and gpud are replaced, and an upgrade is taken back. */
import { desc, eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ctr } from "#scripts/cluster/cluster.ts";
import { clusterAt } from "#scripts/cluster/place.ts";
import {
  ADMIN,
  CHART,
  END,
  imageValues,
  kmeans,
  NODE,
  POLL,
  RELEASE,
  Release,
  releaseValues,
} from "#scripts/cluster/release.ts";
import { auditEvents, gpuServers, leases, notices } from "#server/db/schema/index.ts";
import { testCluster } from "#server/launchers/kubernetes/testing.ts";

const cluster = testCluster();
const PREFIX = "upgrade";
const address = { portal: "10.96.9.1", gateway: "10.96.9.2", broker: "10.96.9.3", postgres: "10.96.9.4" };

const common = releaseValues(cluster, { prefix: PREFIX, address });
const values = {
  ...common,
  // By its name: the label that the chart looks for belongs to another file's release.
  gpud: { ...common.gpud, nodeSelector: { "sluice.dev/gpu-host": null, "kubernetes.io/hostname": NODE } },
};
const namespace = "sluice-upgrade";
const release = new Release(cluster, { namespace, prefix: PREFIX, address, volumes: 2, values });
const { admin } = release;

beforeAll(async () => await release.begin());
afterAll(async () => await release.end());

let first: string;

it("installs, and lends the devices of the node to a workspace", async () => {
  await release.install();
  await release.signUpAdmin();
  await release.openDatabase();
  await release.untilLent();
  first = await admin.launch("first");
  await release.untilRunning(first);
  expect(await release.inNotebook(first, kmeans())).toContain("centres True");
}, 480_000);

const serverStates = async () => (await release.database.db.select().from(gpuServers)).map((one) => one.state);

it("takes no new leases on a node that is cordoned, until it is uncordoned", async () => {
  // Other files' new pods wait meanwhile.
  await release.kube("cordon", NODE);
  await expect.poll(serverStates, POLL).toEqual(["draining"]);
  await release.kube("uncordon", NODE);
  await expect.poll(serverStates, POLL).toEqual(["online"]);
}, 400_000);

/** The images of the gpuds' pods. */
async function gpuds(): Promise<(string | undefined)[]> {
  return (await release.pods("gpud")).map(({ spec }) => spec?.containers[0]?.image);
}

/** Upgrades with the same content under other names of the images, whose pods are new ones. */
async function upgrade(images: Record<string, string>, ...more: string[]): Promise<void> {
  const tags = [];
  for (const [value, name] of Object.entries(images)) {
    const next = `${name}-next`;
    await ctr(clusterAt(), "images", "tag", "--force", name, next);
    tags.push("--set", `images.${value}.tag=${imageValues(next).tag}`);
  }
  const changed = [...tags, ...more, "--values", release.valuesFile];
  await release.helm("upgrade", RELEASE, CHART, ...changed, "--wait", "--wait-for-jobs", "--timeout", "300s");
}
it("goes on computing in a browser's notebook while everything around it is replaced, the gateway as well", async () => {
  const controlPlane = cluster.controlPlaneImage;
  await release.inChromium({ id: first, name: "first" }, async (notebook) => {
    // The trial's database is replaced as well: while it is away no gateway can tell who asks, and JupyterLab says so once.
    const lost = notebook.page.getByRole("dialog", { name: /Server Connection Error/ });
    await notebook.page.addLocatorHandler(lost, async () => await lost.locator(".jp-Dialog-button").first().click());
    await notebook.run("kept = 42");
    const opened: string[] = [];
    notebook.page.on("websocket", (socket) => {
      if (socket.url().includes("/channels")) opened.push(socket.url());
    });
    const computing = await notebook.begin(kmeans(`not os.path.exists("${END}")`));
    await expect.poll(() => release.heldBy(), POLL).toEqual(["active"]);
    await upgrade({ controlPlane, gpud: cluster.gpudImage });
    // What is held keeps its gpud, however old.
    await expect.poll(serverStates, POLL).toEqual(["draining"]);
    expect(await gpuds()).toEqual([cluster.gpudImage]);
    await release.inNotebook(first, `open("${END}", "w")`);
    expect(await notebook.outputOf(computing, 60_000)).toContain("centres True");
    expect(await notebook.run("print('kept', kept)")).toContain("kept 42");
    // By another WebSocket than before: that one ended with its gateway.
    expect(opened.length).toBeGreaterThan(0);
  });
  // Nobody holds anything there any more: the broker replaces it, and it is back in the pool.
  await expect.poll(gpuds, { ...POLL, timeout: 120_000 }).toEqual([`${cluster.gpudImage}-next`]);
  await expect.poll(serverStates, { ...POLL, timeout: 120_000 }).toEqual(["online"]);
  const { action, detail, seq } = auditEvents;
  const told = release.database.db
    .select({ detail })
    .from(auditEvents)
    .where(eq(action, "gpu-server.follow-node"))
    .orderBy(seq);
  expect((await told).slice(-2)).toMatchObject([{ detail: { closed: "update" } }, { detail: { closed: null } }]);
  expect(await release.inNotebook(first, kmeans())).toContain("centres True");
  // The same admin, by the keys that an upgrade keeps.
  expect((await admin.ask("GET", "/api/v1/me")).body).toMatchObject({ email: ADMIN.email });
}, 400_000);

const HOLD = `%gpu attach 0.5
import os, time
import numpy as np
from numba import cuda
held = cuda.to_device(np.arange(1000))
kept = 42
while not os.path.exists("${END}"):
    time.sleep(0.2)
%gpu attach 0.5
again = cuda.to_device(np.arange(1000))
print("again", int(again.copy_to_host().sum()), "kept", kept)
%gpu detach`;

it("replaces a gpud although somebody holds a GPU there, after a notice, and the notebook goes on with the next", async () => {
  await release.inNotebook(first, `import os; os.remove("${END}")`);
  const holding = release.inNotebook(first, HOLD);
  await expect.poll(() => release.heldBy(), POLL).toEqual(["active"]);
  const told = async () => await release.database.db.select().from(notices).where(eq(notices.kind, "reclaim"));
  expect(await told()).toEqual([]);
  // Back to the image of before: what is wanted is that version, whichever is newer.
  const soon = ["--set", "gpud.updateAfterSeconds=0", "--set", "workspaces.moveSeconds=8"];
  const quotas = async () => {
    const { items } = await cluster.objects.list("v1", "ResourceQuota");
    return items.filter(({ metadata }) => metadata?.namespace?.startsWith(`${PREFIX}-`)).length;
  };
  expect(await quotas()).toBe(1);
  // A setting that is taken away holds for teams that are there, without a launch.
  const without = { ...values, workspaces: { ...values.workspaces, team: {} } };
  await release.writeValues(without);
  await upgrade({ controlPlane: cluster.controlPlaneImage }, ...soon);
  await expect.poll(quotas, POLL).toBe(0);
  await expect.poll(told, POLL).toMatchObject([{ title: "Your 0.5 soft will be taken back" }]);
  expect(await gpuds()).toEqual([`${cluster.gpudImage}-next`]);
  await expect.poll(gpuds, { ...POLL, timeout: 120_000 }).toEqual([cluster.gpudImage]);
  await expect.poll(serverStates, { ...POLL, timeout: 120_000 }).toEqual(["online"]);
  const [last] = await release.database.db.select().from(leases).orderBy(desc(leases.grantedAt)).limit(1);
  await release.inNotebook(first, `open("${END}", "w")`);
  expect(await holding).toContain("again 499500 kept 42");
  expect(last).toMatchObject({ state: "ended", endReason: "taken back", endMode: "kill" });
}, 400_000);

it("keeps the newer version's pods after a rollback behind its migration, whose pods wait and say why", async () => {
  const migrations = release.database.sql`drizzle.__drizzle_migrations`;
  await release.database
    .sql`insert into ${migrations} (hash, created_at) select 'newer', max(created_at) + 1 from ${migrations}`;
  const [{ revision = 0 } = {}] = JSON.parse(
    await release.helm("history", RELEASE, "--max", "1", "--output", "json"),
  ) as {
    revision?: number;
  }[];
  await release.helm("rollback", RELEASE, "1");
  const waits = async () => {
    const pods = ["--selector", "app.kubernetes.io/component=portal", "--tail", "1"];
    return await release.kube("logs", ...pods, "--container", "wait-for-database").catch(String);
  };
  await expect
    .poll(waits, POLL)
    .toContain("Waiting for the database and its migration: The database was migrated by a newer version of Sluice.");
  const answers = async () => (await admin.ask("GET", "/api/v1/me")).status;
  await expect.poll(answers, POLL).toBe(200);
  // As it is to the newer version itself, which has that migration.
  await release.database.sql`delete from ${migrations} where hash = 'newer'`;
  await release.helm("rollback", RELEASE, String(revision), "--wait", "--wait-for-jobs", "--timeout", "300s");
  expect((await admin.ask("GET", "/api/v1/me")).body).toMatchObject({ email: ADMIN.email });
}, 400_000);
