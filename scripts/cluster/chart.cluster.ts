/** The chart on a real Kubernetes: installed as a newcomer does, used as people do, upgraded under a notebook. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { chromium, type Page } from "@playwright/test";
import { desc, eq, ne } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { kubernetesFolder, kubernetesVersion } from "#scripts/cluster/build.ts";
import { ctr } from "#scripts/cluster/cluster.ts";
import { clusterAt } from "#scripts/cluster/place.ts";
import { CHROMIUM } from "#scripts/lib/chromium.ts";
import { LOCKS } from "#server/broker/reconciler/leadership.ts";
import { openDatabase } from "#server/db/client.ts";
import { auditEvents, gpuServers, leases, notices, workspaceEvents, workspaces } from "#server/db/schema/index.ts";
import { send } from "#server/gateway/testing.ts";
import { runCode } from "#server/jupyter/run-code.ts";
import { namespaceOf } from "#server/launchers/kubernetes/objects.ts";
import { makeVolumes, STORAGE_CLASS, testCluster } from "#server/launchers/kubernetes/testing.ts";
import { Notebook } from "../../e2e/fixtures/notebook.ts";
import { openLab, signIn } from "../../e2e/fixtures/portal.ts";

const execute = promisify(execFile);
const cluster = testCluster();
const kubectl = path.join(kubernetesFolder(), "kubectl");
const NAMESPACE = "sluice-test";
const RELEASE = "sluice";
/** Where people run jobs of their own: a namespace that Sluice has not made. */
const JOBS = "jobs-test";
// Fixed, because this cluster has no DNS.
const ADDRESS = { portal: "10.96.7.1", gateway: "10.96.7.2", broker: "10.96.7.3", postgres: "10.96.7.4" };
const PORTAL = `http://${ADDRESS.portal}`;
// What browsers know: without TLS they keep cookies for such names alone.
const PORTAL_URL = "http://portal.localhost";
const GATEWAY_HOST = "notebooks.localhost";
const ADMIN = { name: "First Admin", email: "admin@example.com", password: "correct horse battery staple" };
const MEMBER = { name: "Second Person", email: "scientist@example.com", password: "another horse battery staple" };

const image = (name: string) => {
  const at = name.lastIndexOf(":");
  return { repository: name.slice(0, at), tag: name.slice(at + 1), pullPolicy: "Never" };
};
const small = { cpu: { request: "100m", limit: "2" }, memory: { request: "256Mi", limit: "2Gi" } };
const light = { requests: { cpu: "20m", memory: "64Mi" }, limits: { memory: "1Gi" } };
const values = {
  images: {
    controlPlane: image(cluster.controlPlaneImage),
    gpud: image(cluster.gpudImage),
    client: image(cluster.clientImage),
  },
  postgres: {
    enabled: true,
    clusterIP: ADDRESS.postgres,
    storage: { size: "1Gi", storageClass: STORAGE_CLASS },
    resources: light,
  },
  portal: { url: PORTAL_URL, replicas: 1, service: { clusterIP: ADDRESS.portal }, resources: light },
  gateway: {
    url: `http://${GATEWAY_HOST}`,
    host: GATEWAY_HOST,
    replicas: 1,
    service: { clusterIP: ADDRESS.gateway },
    drainSeconds: 2,
    resources: light,
  },
  broker: {
    url: `https://${ADDRESS.broker}:3001`,
    replicas: 2,
    service: { clusterIP: ADDRESS.broker },
    resources: light,
  },
  workspaces: {
    namespacePrefix: "chart",
    environments: { "cuda-python": { image: cluster.workspaceImage, size: "small", pull: "Never" } },
    sizes: { small },
    home: { size: "1Gi", storageClass: STORAGE_CLASS },
    team: { quota: { "limits.memory": "64Gi" } },
    network: { to: [{ addresses: "10.0.0.0/8" }] },
  },
  pods: { enabled: true, namespaces: { [JOBS]: [{ team: "demo", person: ADMIN.email }] } },
  gpud: {
    backend: "soft",
    stateDirectory: path.join(cluster.folder, "gpud"),
    args: ["--soft-memory", "2G"],
    resources: light,
  },
};

const POLL = { timeout: 30_000, interval: 300 };

let folder: string;
let dropVolumes: () => Promise<void>;
let database: ReturnType<typeof openDatabase>;

const env = { ...process.env, KUBECONFIG: cluster.kubeconfig };
async function kube(...args: string[]): Promise<string> {
  return (await execute(kubectl, ["--namespace", NAMESPACE, ...args], { env, maxBuffer: 1 << 24 })).stdout;
}
/** Helm, and when it fails what the pods say. */
async function helm(...args: string[]): Promise<string> {
  try {
    const home = { HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
    const place = ["--namespace", NAMESPACE];
    return (await execute(cluster.helm, [...args, ...place], { env: { ...env, ...home }, maxBuffer: 1 << 24 })).stdout;
  } catch (error) {
    const [pods, events] = await Promise.all([
      kube("get", "pods", "--output", "wide"),
      kube("get", "events", "--sort-by", ".lastTimestamp"),
    ]);
    const ours = ["--selector", "app.kubernetes.io/name=sluice", "--all-containers", "--ignore-errors"];
    const logs = await kube("logs", ...ours, "--prefix", "--tail", "8").catch(String);
    throw new Error([String(error), pods, events.split("\n").slice(-25).join("\n"), logs].join("\n"));
  }
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-chart-"));
  dropVolumes = await makeVolumes(cluster, 3);
  await writeFile(path.join(folder, "values.json"), JSON.stringify(values));
});

afterAll(async () => {
  await database?.close();
  await helm("uninstall", RELEASE, "--wait", "--timeout", "60s").catch((error: unknown) => console.error(error));
  for (const namespace of [NAMESPACE, JOBS])
    await kube("delete", "namespace", namespace, "--wait=false").catch(() => "");
  for (const name of (await kube("get", "namespaces", "--output", "name")).split("\n"))
    if (name.startsWith("namespace/chart-")) await kube("delete", name, "--wait=false").catch(() => "");
  await kube("label", "node", "--all", "sluice.dev/gpu-host-").catch(() => "");
  await dropVolumes?.();
  await rm(folder, { recursive: true, force: true });
});

/** A person with a browser's cookies. */
class Person {
  readonly #cookies = new Map<string, string>();

  async ask<T>(method: string, where: string, body?: unknown): Promise<{ status: number; body: T }> {
    const form = body instanceof URLSearchParams;
    const response = await fetch(`${PORTAL}${where}`, {
      method,
      redirect: "manual",
      headers: {
        origin: PORTAL_URL,
        cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; "),
        ...(body === undefined || form ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: form ? body : JSON.stringify(body) }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [pair = ""] = line.split(";");
      const at = pair.indexOf("=");
      this.#cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    const text = await response.text();
    return { status: response.status, body: (text.startsWith("{") ? JSON.parse(text) : text) as T };
  }

  async signIn({ email, password }: { email: string; password: string }): Promise<void> {
    const { csrfToken } = (await this.ask<{ csrfToken: string }>("GET", "/api/auth/csrf")).body;
    const form = new URLSearchParams({ email, password, csrfToken, json: "true" });
    await this.ask("POST", "/api/auth/callback/credentials", form);
    expect((await this.ask("GET", "/api/v1/me")).body).toMatchObject({ email });
  }

  /** Launches and gives the workspace's id at once. */
  async launch(name: string): Promise<string> {
    const launched = await this.ask<{ id: string }>("POST", "/api/v1/workspaces", { name, image: "cuda-python" });
    expect(launched.status, JSON.stringify(launched.body)).toBe(201);
    return launched.body.id;
  }
}

const admin = new Person();
const scientist = new Person();

const row = async (id: string) => {
  const [found] = await database.db.select().from(workspaces).where(eq(workspaces.id, id));
  if (found === undefined) throw new Error("no workspace");
  return found;
};
async function runs(id: string): Promise<void> {
  const observed = async () => `${(await row(id)).observed} ${(await row(id)).message ?? ""}`;
  await expect.poll(observed, { timeout: 100_000, interval: 300 }).toBe("running ");
}
async function inNotebook(id: string, code: string): Promise<string> {
  const { endpoint, serverToken } = await row(id);
  return await runCode({ endpoint: endpoint ?? "", token: serverToken ?? "" }, code, { timeoutMs: 100_000 });
}

it("installs", async () => {
  const chart = path.resolve("deploy/helm/sluice");
  const place = ["--create-namespace", "--values", path.join(folder, "values.json")];
  await helm("install", RELEASE, chart, ...place, "--wait", "--wait-for-jobs", "--timeout", "200s");
}, 240_000);

it("shows the set-up link in the migration's log, and its admin signs in", async () => {
  const log = await kube("logs", `job/${RELEASE}-migrate-1`);
  const code = /setup\?code=(\S+)/.exec(log)?.[1];
  expect(code, log).toBeDefined();
  expect((await admin.ask("POST", "/api/v1/setup", { code, ...ADMIN })).status).toBe(201);
  await admin.signIn(ADMIN);
  const page = await admin.ask("GET", "/workspaces");
  expect(page.status).toBe(200);
  expect(page.body).toContain("Workspaces");
});

it("lends the devices of a node that is labelled, by a gpud that joined with its account", async () => {
  const secret = JSON.parse(await kube("get", "secret", `${RELEASE}-postgres`, "--output", "json")) as {
    data: { url: string };
  };
  database = openDatabase(Buffer.from(secret.data.url, "base64").toString(), { max: 2, applicationName: "test" });
  expect(await database.db.select().from(gpuServers)).toEqual([]);
  await kube("label", "node", "--all", "sluice.dev/gpu-host=true");
  const state = async () => (await database.db.select().from(gpuServers)).map((one) => `${one.name} ${one.state}`);
  await expect
    .poll(state, { timeout: 60_000, interval: 500 })
    .toEqual(["node-1 online"])
    .catch(async (error: unknown) => {
      throw new Error(`${String(error)}\n${await kube("logs", `daemonset/${RELEASE}-gpud`)}`);
    });
});

it("gives gpud two capabilities, no account of the cluster and nothing to write but its state", async () => {
  const inside = await kube(
    ...["exec", `daemonset/${RELEASE}-gpud`, "--", "sh", "-c"],
    "grep -E 'CapEff|Seccomp:|NoNewPrivs' /proc/1/status; ls /var/run/secrets; touch /etc/x 2>&1 || true",
  );
  // CAP_SETGID and CAP_SETUID, by which its workers become nobody.
  expect(inside.replaceAll(/\s+/g, " ")).toContain("CapEff: 00000000000000c0 NoNewPrivs: 1 Seccomp: 2 sluice");
  expect(inside).toContain("Read-only file system");
});

it("refuses a token of another account of the cluster, for others, or of no pod, and a second server by a gpud's", async () => {
  const token = (await kube("create", "token", `${RELEASE}-portal`, "--audience", "sluice")).trim();
  const wrong = (await kube("create", "token", `${RELEASE}-gpud`, "--audience", "elsewhere")).trim();
  const ofNoPod = (await kube("create", "token", `${RELEASE}-gpud`, "--audience", "sluice")).trim();
  const answerTo = async (one: string) => {
    const body = JSON.stringify({ token: one, name: "stranger", publicKey: "A".repeat(43) });
    return await kube(
      ...["exec", `deployment/${RELEASE}-portal`, "--container", "portal", "--"],
      ...["/opt/sluice/node", "--eval"],
      `fetch(process.env.SLUICE_BROKER_URL + "/v1/gpu-servers/join", { method: "POST", headers: { "content-type": "application/json" }, body: ${JSON.stringify(body)} }).then(async (answer) => console.log(answer.status, await answer.text()))`,
    );
  };
  for (const one of [token, wrong, ofNoPod]) expect(await answerTo(one)).toMatch(/^403 .*join token is not valid/);
  const gpuds = (await kube("exec", `daemonset/${RELEASE}-gpud`, "--", "cat", "/var/run/secrets/sluice/token")).trim();
  expect(await answerTo(gpuds)).toMatch(/^409 .*has another GPU server in the pool/);
});

let first: string;

it("launches a workspace as a pod, and opens JupyterLab through the gateway", async () => {
  first = await admin.launch("first");
  await runs(first);
  const { url } = (await admin.ask<{ url: string }>("POST", `/api/v1/workspaces/${first}/open`)).body;
  const way = new URL(url);
  expect(way.host).toBe(`${first}.${GATEWAY_HOST}`);
  const at = { host: way.host, address: ADDRESS.gateway };
  const entered = await send(80, { ...at, path: `${way.pathname}${way.search}` });
  const cookie = (entered.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
  const lab = await send(80, { ...at, path: "/lab", headers: { cookie, accept: "text/html" } });
  expect(lab.status).toBe(200);
  expect(lab.body).toContain("jupyter-config-data");
}, 120_000);

const KMEANS = `%gpu attach 0.5
import os, time
import numpy as np
from numba import cuda
@cuda.jit
def nearest(points, centres, label):
    i = cuda.grid(1)
    if i < points.shape[0]:
        best, at = 1e30, 0
        for c in range(centres.shape[0]):
            d = (points[i, 0] - centres[c, 0]) ** 2 + (points[i, 1] - centres[c, 1]) ** 2
            if d < best:
                best, at = d, c
        label[i] = at
rng = np.random.default_rng(7)
truth = np.array([[0, 0], [5, 5], [0, 5]], dtype=np.float64)
points = np.concatenate([t + rng.normal(0, 0.3, (400, 2)) for t in truth])
centres = points[[0, 400, 800]].copy()
d_points = cuda.to_device(points)
label = cuda.device_array(len(points), dtype=np.int32)
rounds, began = 0, time.time()
while rounds < 10 or GOES_ON:
    nearest[5, 256](d_points, cuda.to_device(centres), label)
    got = label.copy_to_host()
    centres = np.array([points[got == c].mean(axis=0) for c in range(3)])
    rounds += 1
print("centres", np.abs(centres - truth).max() < 0.1)
%gpu detach`;
/** A k-means that goes on for as long as that holds. */
const kmeans = (goesOn = "False") => KMEANS.replace("GOES_ON", goesOn);

it("computes a k-means on half a GPU of that gpud", async () => {
  expect(await inNotebook(first, kmeans())).toContain("centres True");
}, 120_000);

/** A notebook in a browser, opened through portal and gateway as a person does; and the portal, in another tab. */
async function inChromium(work: (notebook: Notebook, portal: Page) => Promise<void>): Promise<void> {
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"],
      // This cluster has no DNS.
      `--host-resolver-rules=MAP portal.localhost ${ADDRESS.portal}, MAP *.${GATEWAY_HOST} ${ADDRESS.gateway}`,
    ],
  });
  try {
    const page = await (await browser.newContext({ baseURL: PORTAL_URL })).newPage();
    await signIn(page, ADMIN.email);
    const lab = await openLab(page, "first");
    expect(new URL(lab.url()).host).toBe(`${first}.${GATEWAY_HOST}`);
    await work(await Notebook.create(lab), page);
  } finally {
    await browser.close();
    await endNotebooks(first);
  }
}

it("is used in Chromium: sign-in, JupyterLab through the gateway, and a cell that borrows half a GPU", async () => {
  await inChromium(async (notebook, portal) => {
    const printed = await notebook.run(kmeans());
    expect(printed).toContain("Attached 0.5");
    expect(printed).toContain("centres True");
    // What the pod prints from now on is on its page as it comes.
    await portal.goto(`/workspaces/${first}/log`);
    const log = portal.getByRole("log", { name: "Log of start 1" });
    await log.waitFor();
    const { endpoint, serverToken } = await row(first);
    await fetch(`${endpoint}/api/contents/is-not-there`, { headers: { authorization: `token ${serverToken}` } });
    await expect.poll(() => log.textContent(), POLL).toContain("404 GET /api/contents/is-not-there");
  });
}, 240_000);

/** Ends the notebooks' kernels, and with them what is parked for them; JupyterLab opens none of them again. */
async function endNotebooks(id: string): Promise<void> {
  const { endpoint, serverToken } = await row(id);
  const headers = { authorization: `token ${serverToken}` };
  await fetch(`${endpoint}/lab/api/workspaces/default`, { method: "DELETE", headers });
  const kernels = (await (await fetch(`${endpoint}/api/kernels`, { headers })).json()) as { id: string }[];
  for (const kernel of kernels) await fetch(`${endpoint}/api/kernels/${kernel.id}`, { method: "DELETE", headers });
}

/** The broker that leads holds the lock of the leader on a connection from its pod. */
async function leadingBroker(): Promise<string> {
  const [leader] = await database.sql<{ address: string }[]>`
    select host(client_addr) as address from pg_locks join pg_stat_activity using (pid)
    where locktype = 'advisory' and objid = ${LOCKS.reconciler} and granted`;
  const pods = JSON.parse(await kube("get", "pods", "--output", "json")) as {
    items: { metadata: { name: string }; status: { podIP?: string } }[];
  };
  const found = pods.items.find(({ status }) => status.podIP === leader?.address);
  if (found === undefined) throw new Error(`no pod leads (${leader?.address})`);
  return found.metadata.name;
}

/** All that the page of a workspace tells of its start. */
async function startOf(id: string): Promise<string> {
  const events = await database.db.select().from(workspaceEvents).where(eq(workspaceEvents.workspaceId, id));
  return events.map(({ message }) => message).join("\n");
}

it("goes on with a launch whose leading broker is killed in the middle of it, for another person", async () => {
  const { code } = await invitation();
  const { name, email, password } = MEMBER;
  expect((await scientist.ask("POST", "/api/v1/invitations/accept", { code, name, password })).status).toBeLessThan(
    300,
  );
  await scientist.signIn({ email, password });
  const leader = await leadingBroker();
  // So that the launch cannot come to its end before its broker does: no node takes new pods meanwhile.
  const taint = "test.sluice.dev/held";
  await kube("taint", "node", "node-1", `${taint}:NoSchedule`);
  try {
    second = await scientist.launch("second");
    const observed = async () => (await row(second)).observed;
    await expect.poll(() => startOf(second), POLL).toContain("nodes are kept for others");
    expect(await leadingBroker()).toBe(leader);
    await kube("delete", "pod", leader, "--force", "--grace-period=0");
    expect(await observed()).toBe("starting");
    // While its process ends it may still hold the lock, and then nobody does.
    await expect.poll(() => leadingBroker().catch(() => leader), POLL).not.toBe(leader);
    expect(await observed()).toBe("starting");
  } finally {
    await kube("taint", "node", "node-1", `${taint}-`);
  }
  await runs(second);
}, 150_000);

it("answers every request while the portal's pod is replaced", async () => {
  const names = async () =>
    (await kube("get", "pods", "--selector", "app.kubernetes.io/component=portal", "--output", "name")).trim();
  const before = await names();
  await kube("rollout", "restart", `deployment/${RELEASE}-portal`);
  const replaced = kube("wait", before, "--for=delete", "--timeout=100s");
  let waiting = true;
  const noLonger = () => (waiting = false);
  replaced.then(noLonger, noLonger);
  const answers = new Set<string>();
  while (waiting) {
    // Each by a connection of its own.
    const answer = send(80, { address: ADDRESS.portal, host: "portal.localhost", path: "/healthz" });
    answers.add(await Promise.race([answer.then(({ status }) => `${status}`, String), sleep(3_000, "none in time")]));
    await sleep(10);
  }
  await replaced;
  expect(await names()).not.toBe(before);
  expect([...answers]).toEqual(["200"]);
}, 120_000);

let second: string;

async function invitation(): Promise<{ code: string }> {
  const { teams } = (await admin.ask<{ teams: { id: string }[] }>("GET", "/api/v1/me")).body;
  const wanted = { email: MEMBER.email, teamId: teams[0]?.id };
  const { link } = (await admin.ask<{ link: string }>("POST", "/api/v1/invitations", wanted)).body;
  return { code: link.split("/").at(-1) ?? "" };
}

it("lets both share one device at the same time", async () => {
  const both = [first, second];
  // They compute until they have been seen to.
  const seen = "/tmp/seen";
  const computing = Promise.all(both.map((id) => inNotebook(id, kmeans(`not os.path.exists("${seen}")`))));
  await expect.poll(heldBy, POLL).toEqual(["active", "active"]);
  const { workspaceId, gpuId, state } = leases;
  const held = await database.db.select({ workspaceId, gpuId }).from(leases).where(ne(state, "ended"));
  expect(held.map((lease) => lease.workspaceId).sort()).toEqual(both.toSorted());
  expect(new Set(held.map((lease) => lease.gpuId)).size).toBe(1);
  for (const id of both) await inNotebook(id, `open("${seen}", "w")`);
  for (const printed of await computing) expect(printed).toContain("centres True");
}, 120_000);

/** A pod as the strictest security standard takes it, with one container. */
const podSpec = (container: Record<string, unknown>) => ({
  restartPolicy: "Never",
  securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } },
  containers: [
    {
      name: "main",
      imagePullPolicy: "Never",
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
      ...container,
    },
  ],
});
async function apply(object: Record<string, unknown>, namespace = JOBS): Promise<string> {
  const file = path.join(folder, "object.json");
  await writeFile(file, JSON.stringify(object));
  return await kube("create", "--namespace", namespace, "--filename", file);
}
async function job(name: string, labels: Record<string, string>, container: Record<string, unknown>): Promise<void> {
  const template = { metadata: { labels }, spec: podSpec(container) };
  await apply({ apiVersion: "batch/v1", kind: "Job", metadata: { name }, spec: { backoffLimit: 0, template } });
}
/** What is told on the pods of a job: `reason: message`, in order. */
async function told(name: string): Promise<string[]> {
  const columns = "jsonpath={range .items[*]}{.involvedObject.name}{'\\t'}{.reason}: {.message}{'\\n'}{end}";
  const lines = await kube("get", "events", "--namespace", JOBS, "--sort-by=.firstTimestamp", "--output", columns);
  return lines.split("\n").flatMap((line) => (line.startsWith(`${name}-`) ? [line.split("\t")[1] ?? ""] : []));
}
const SUM = `from numba import cuda
import numpy as np
@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size: out[i] = x[i] + y[i]
x = np.arange(1000, dtype=np.float32)
d = cuda.device_array_like(x)
add[4, 256](cuda.to_device(x), cuda.to_device(x), d)
ours = [line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so.1" in line]
print("sum", np.array_equal(d.copy_to_host(), 2 * x), ours[0])`;

it("lends a GPU to a Job by its label when there is one, says so on its pod, and has it back with the Job's end", async () => {
  const restricted = { "pod-security.kubernetes.io/enforce": "restricted" };
  await apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: JOBS, labels: restricted } }, "default");
  // A notebook of this test gives back when it ends.
  const holding = inNotebook(first, "%gpu attach 1\nimport time; time.sleep(25)\n%gpu detach");
  const active = () => database.db.select({ milli: leases.milli }).from(leases).where(eq(leases.state, "active"));
  await expect.poll(active, POLL).toEqual([{ milli: 1000 }]);
  const python = ["/opt/sluice/environment/bin/python", "-c", SUM];
  const label = { "sluice.dev/gpu": "0.5" };
  await job("sum", { ...label, "sluice.dev/gpu-wait": "2m" }, { image: cluster.workspaceImage, command: python });
  await job("bare", { "sluice.dev/gpu-memory": "1G" }, { image: cluster.bareImage, command: ["/program"] });
  await expect
    .poll(() => told("sum"), POLL)
    .toContainEqual(expect.stringMatching(/^GpuQueued: Waits for 0.5 soft, 1 of 1/));
  expect(await holding).toContain("Attached 1");
  await kube("wait", "job/sum", "--namespace", JOBS, "--for=condition=complete", "--timeout=60s");
  const log = await kube("logs", "job/sum", "--namespace", JOBS, "--container", "main");
  expect(log).toContain("sum True /sluice/lib/libcuda.so.1");
  expect(await told("sum")).toContainEqual(expect.stringMatching(/^GpuBorrowed: Borrowed 0.5 GPU: soft-0 on node-1/));
  const held = async () =>
    (
      await database.db
        .select({ name: workspaces.name, desired: workspaces.desired, milli: leases.milli, reason: leases.endReason })
        .from(leases)
        .innerJoin(workspaces, eq(workspaces.id, leases.workspaceId))
        .where(eq(workspaces.launcher, "pod"))
    ).map(({ name, ...rest }) => ({ ...rest, name: name.replace(/-\w+$/, "") }));
  const back = { name: `${JOBS}/sum`, desired: "removed", milli: 500, reason: "given back" };
  await expect.poll(held, POLL).toEqual([back]);
}, 120_000);

it("refuses an image without glibc on its pod, and a namespace that belongs to no team at once", async () => {
  const refusal: unknown = expect.stringMatching(/^GpuNotBorrowed: The image of container main .* it has no glibc/);
  await expect.poll(() => told("bare"), POLL).toContainEqual(refusal);
  await kube("wait", "job/bare", "--namespace", JOBS, "--for=condition=failed", "--timeout=30s");
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "stranger", labels: { "sluice.dev/gpu": "0.5" } },
    spec: podSpec({ image: cluster.bareImage }),
  };
  await expect(apply(pod, "default")).rejects.toThrow("The namespace default belongs to no team of Sluice");
}, 60_000);

it("lets the broker's account write into namespaces of its teams, and outside of them what is Sluice's alone", async () => {
  const as = ["--as", `system:serviceaccount:${NAMESPACE}:${RELEASE}-broker`, "--dry-run=server"];
  const team = namespaceOf({ namespacePrefix: "chart" }, (await row(first)).teamId);
  const outcome = async (asked: Promise<string>) =>
    await asked.then(
      () => "done",
      (error: unknown) => /denied request: (The broker \w+)/.exec(String(error))?.[1] ?? String(error),
    );
  const puts = async (
    kind: string,
    name: string,
    namespace?: string,
    more: { spec?: object; type?: string; data?: object; labels?: object } = {},
  ) => {
    const file = path.join(folder, "put.json");
    const { spec, type, data, ...metadata } = more;
    const object = { apiVersion: "v1", kind, metadata: { name, namespace, ...metadata }, spec, type, data };
    await writeFile(file, JSON.stringify(object));
    const place = namespace === undefined ? [] : ["--namespace", namespace];
    return await outcome(kube("apply", "--server-side", "--filename", file, ...as, ...place));
  };
  const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
  const registrys = {
    ...{ type: "kubernetes.io/dockerconfigjson", labels: { "sluice.dev/pull-secret": "copy" } },
    data: { ".dockerconfigjson": Buffer.from("{}").toString("base64") },
  };
  const claimRef = { namespace: team, name: "any" };
  const volume = { capacity: { storage: "1Gi" }, accessModes: ["ReadOnlyMany"], claimRef };
  const exported = { spec: { ...volume, nfs: { server: "nas.example", path: "/" } } };
  const ofNode = { spec: { ...volume, hostPath: { path: "/" } } };
  expect({
    team: await puts("Secret", "any", team),
    borrowing: await puts("Secret", "any", JOBS),
    registrys: await puts("Secret", "any", JOBS, registrys),
    borrowingsOther: await puts("ConfigMap", "any", JOBS),
    elsewhere: await puts("Secret", "any", "kube-system"),
    own: await puts("Secret", `${RELEASE}-keys`, NAMESPACE),
    ownDeleted: await outcome(kube("delete", "secret", `${RELEASE}-keys`, ...as)),
    newTeam: await puts("Namespace", "chart-team-next", undefined, { labels }),
    newTeamForAnyPod: await puts("Namespace", "chart-team-next"),
    namespace: await puts("Namespace", "default", undefined, { labels }),
    volume: await puts("PersistentVolume", "ws-any-dst-any", undefined, exported),
    othersVolume: await puts("PersistentVolume", "homes-1", undefined, exported),
    nodesVolume: await puts("PersistentVolume", "ws-any-dst-any", undefined, ofNode),
    ownDatabase: await outcome(kube("delete", "pod", `${RELEASE}-postgres-0`, ...as)),
    gpud: await outcome(kube("delete", "pod", "--selector", "app.kubernetes.io/component=gpud", ...as)),
  }).toEqual({
    ...{
      team: "done",
      borrowing: "The broker writes",
      borrowingsOther: "The broker writes",
      elsewhere: "The broker writes",
    },
    ...{ own: "The broker writes", ownDeleted: "The broker writes" },
    ...{ newTeam: "done", newTeamForAnyPod: "The broker makes", namespace: "The broker makes" },
    ...{ registrys: "done", volume: "done", othersVolume: "The broker makes", nodesVolume: "The broker makes" },
    ...{ ownDatabase: "The broker writes", gpud: "done" },
  });
});

it("lends GPU memory to a Deployment's pod by its label for as long as that runs", async () => {
  const labels = { app: "serves", "sluice.dev/gpu-memory": "1G" };
  const command = ["/opt/sluice/environment/bin/python", "-c", "import time; time.sleep(600)"];
  const pod = podSpec({ image: cluster.workspaceImage, command });
  const spec = { ...pod, restartPolicy: "Always", terminationGracePeriodSeconds: 1 };
  await apply({
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "serves" } },
    spec: { selector: { matchLabels: { app: "serves" } }, template: { metadata: { labels }, spec } },
  });
  await kube("rollout", "status", "deployment/serves", "--namespace", JOBS, "--timeout=60s");
  expect(await heldBy()).toHaveLength(1);
  await kube("delete", "deployment/serves", "--namespace", JOBS, "--wait=false");
  await expect.poll(heldBy, POLL).toEqual([]);
}, 120_000);

it("takes no new leases on a node that is cordoned, until it is uncordoned", async () => {
  const state = async () => (await database.db.select().from(gpuServers)).map((one) => one.state);
  await kube("cordon", "node-1");
  await expect.poll(state, POLL).toEqual(["draining"]);
  await kube("uncordon", "node-1");
  await expect.poll(state, POLL).toEqual(["online"]);
}, 60_000);

/** The images of the gpuds' pods. */
async function gpuds(): Promise<string[]> {
  const columns = "jsonpath={.items[*].spec.containers[0].image}";
  const found = await kube("get", "pods", "--selector", "app.kubernetes.io/component=gpud", "--output", columns);
  return found.split(" ");
}

/** Upgrades with the same content under other names of the images, whose pods are new ones. */
async function upgrade(images: Record<string, string>, ...more: string[]): Promise<void> {
  const tags = [];
  for (const [value, name] of Object.entries(images)) {
    const next = `${name}-next`;
    await ctr(clusterAt(), "images", "tag", "--force", name, next);
    tags.push("--set", `images.${value}.tag=${image(next).tag}`);
  }
  const chart = path.resolve("deploy/helm/sluice");
  const changed = [...tags, ...more, "--values", path.join(folder, "values.json")];
  await helm("upgrade", RELEASE, chart, ...changed, "--wait", "--wait-for-jobs", "--timeout", "200s");
}
const serverStates = async () => (await database.db.select().from(gpuServers)).map((one) => one.state);
/** Whoever computes in the workspace until then may end. */
const END = "/tmp/end";

it("goes on computing in a browser's notebook while everything around it is replaced, the gateway as well", async () => {
  const controlPlane = cluster.controlPlaneImage;
  await inChromium(async (notebook) => {
    // The trial's database is replaced as well: while it is away no gateway can tell who asks, and JupyterLab says so once.
    const lost = notebook.page.getByRole("dialog", { name: /Server Connection Error/ });
    await notebook.page.addLocatorHandler(lost, async () => await lost.locator(".jp-Dialog-button").first().click());
    await notebook.run("kept = 42");
    const opened: string[] = [];
    notebook.page.on("websocket", (socket) => {
      if (socket.url().includes("/channels")) opened.push(socket.url());
    });
    const computing = await notebook.begin(kmeans(`not os.path.exists("${END}")`));
    await expect.poll(heldBy, POLL).toEqual(["active"]);
    await upgrade({ controlPlane, gpud: cluster.gpudImage });
    // What is held keeps its gpud, however old.
    await expect.poll(serverStates, POLL).toEqual(["draining"]);
    expect(await gpuds()).toEqual([cluster.gpudImage]);
    await inNotebook(first, `open("${END}", "w")`);
    expect(await notebook.outputOf(computing, 60_000)).toContain("centres True");
    expect(await notebook.run("print('kept', kept)")).toContain("kept 42");
    // By another WebSocket than before: that one ended with its gateway.
    expect(opened.length).toBeGreaterThan(0);
  });
  // Nobody holds anything there any more: the broker replaces it, and it is back in the pool.
  await expect.poll(gpuds, { ...POLL, timeout: 90_000 }).toEqual([`${cluster.gpudImage}-next`]);
  await expect.poll(serverStates, { ...POLL, timeout: 90_000 }).toEqual(["online"]);
  const { action, detail, seq } = auditEvents;
  const told = database.db
    .select({ detail })
    .from(auditEvents)
    .where(eq(action, "gpu-server.follow-node"))
    .orderBy(seq);
  expect((await told).slice(-2)).toMatchObject([{ detail: { closed: "update" } }, { detail: { closed: null } }]);
  expect(await inNotebook(first, kmeans())).toContain("centres True");
  // The same admin, by the keys that an upgrade keeps.
  expect((await admin.ask("GET", "/api/v1/me")).body).toMatchObject({ email: ADMIN.email });
}, 360_000);

/** The states of the leases that are open. */
async function heldBy(): Promise<string[]> {
  return (await database.db.select().from(leases)).flatMap(({ state }) => (state === "ended" ? [] : [state]));
}

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
  await inNotebook(first, `import os; os.remove("${END}")`);
  const holding = inNotebook(first, HOLD);
  await expect.poll(heldBy, POLL).toEqual(["active"]);
  const told = async () => await database.db.select().from(notices).where(eq(notices.kind, "reclaim"));
  expect(await told()).toEqual([]);
  // Back to the image of before: what is wanted is that version, whichever is newer.
  const soon = ["--set", "gpud.updateAfterSeconds=0", "--set", "workspaces.moveSeconds=8"];
  const quotas = async () => {
    const all = await kube(
      "get",
      "resourcequotas",
      "--all-namespaces",
      "--output",
      "jsonpath={.items[*].metadata.namespace}",
    );
    return all.split(" ").filter((one) => one.startsWith("chart-")).length;
  };
  expect(await quotas()).toBe(1);
  // A setting that is taken away holds for teams that are there, without a launch.
  const without = { ...values, workspaces: { ...values.workspaces, team: {} } };
  await writeFile(path.join(folder, "values.json"), JSON.stringify(without));
  await upgrade({ controlPlane: cluster.controlPlaneImage }, ...soon);
  await expect.poll(quotas, POLL).toBe(0);
  await expect.poll(told, POLL).toMatchObject([{ title: "Your 0.5 soft will be taken back" }]);
  expect(await gpuds()).toEqual([`${cluster.gpudImage}-next`]);
  await expect.poll(gpuds, { ...POLL, timeout: 90_000 }).toEqual([cluster.gpudImage]);
  await expect.poll(serverStates, { ...POLL, timeout: 90_000 }).toEqual(["online"]);
  const [last] = await database.db.select().from(leases).orderBy(desc(leases.grantedAt)).limit(1);
  await inNotebook(first, `open("${END}", "w")`);
  expect(await holding).toContain("again 499500 kept 42");
  expect(last).toMatchObject({ state: "ended", endReason: "taken back", endMode: "kill" });
}, 360_000);

it("keeps the newer version's pods after a rollback behind its migration, whose pods wait and say why", async () => {
  const migrations = database.sql`drizzle.__drizzle_migrations`;
  await database.sql`insert into ${migrations} (hash, created_at) select 'newer', max(created_at) + 1 from ${migrations}`;
  const [{ revision = 0 } = {}] = JSON.parse(await helm("history", RELEASE, "--max", "1", "--output", "json")) as {
    revision?: number;
  }[];
  await helm("rollback", RELEASE, "1");
  const waits = async () => {
    const pods = ["--selector", "app.kubernetes.io/component=portal", "--tail", "1"];
    return await kube("logs", ...pods, "--container", "wait-for-database").catch(String);
  };
  await expect
    .poll(waits, POLL)
    .toContain("Waiting for the database and its migration: The database was migrated by a newer version of Sluice.");
  const answers = async () => (await admin.ask("GET", "/api/v1/me")).status;
  await expect.poll(answers, POLL).toBe(200);
  // As it is to the newer version itself, which has that migration.
  await database.sql`delete from ${migrations} where hash = 'newer'`;
  await helm("rollback", RELEASE, String(revision), "--wait", "--wait-for-jobs", "--timeout", "200s");
  expect((await admin.ask("GET", "/api/v1/me")).body).toMatchObject({ email: ADMIN.email });
}, 300_000);

it("claims the devices that it lends from whatever else hands them out", async () => {
  const chart = path.resolve("deploy/helm/sluice");
  const values = { resource: "example.com/gpu", count: "2" };
  const claim = Object.entries(values).flatMap(([name, value]) => ["--set", `gpud.claim.${name}=${value}`]);
  // Beside the other one on this node it is a server of its own.
  claim.push("--set", `gpud.stateDirectory=${path.join(cluster.folder, "claiming")}`);
  const made = await helm(
    "template",
    RELEASE,
    chart,
    "--kube-version",
    kubernetesVersion(),
    "--values",
    path.join(folder, "values.json"),
    ...claim,
  );
  const [daemonSet = ""] = made.split("\n---\n").filter((one) => /^kind: DaemonSet$/m.test(one));
  const renamed = daemonSet.replace(/^ {2}name: .*$/m, "  name: claiming");
  // As a device plugin tells the node what it has.
  const capacity = JSON.stringify({ status: { capacity: { "example.com/gpu": "2" } } });
  await kube("patch", "node", "node-1", "--subresource=status", "--type=merge", "--patch", capacity);
  const file = path.join(folder, "claiming.yaml");
  await writeFile(file, renamed.replaceAll(/(app\.kubernetes\.io\/component"?: ?"?)gpud/g, "$1claiming"));
  await kube("apply", "--filename", file);
  const phase = async (selector: string) =>
    await kube("get", "pods", "--selector", selector, "--output", "jsonpath={.items[*].status.phase}");
  await expect.poll(() => phase("app.kubernetes.io/component=claiming"), POLL).toBe("Running");
  const other = {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name: "other", labels: { other: "yes" } } },
    spec: podSpec({ image: "localhost/pause:1", resources: { limits: { "example.com/gpu": 1 } } }),
  };
  await apply(other, NAMESPACE);
  const why = () => kube("get", "pod", "other", "--output", "jsonpath={.status.conditions[*].message}");
  await expect.poll(why, POLL).toContain("Insufficient example.com/gpu");
  await kube("delete", "--filename", file, "--wait=false");
  await expect.poll(() => phase("other=yes"), { ...POLL, timeout: 60_000 }).toBe("Running");
  await kube("delete", "pod", "other", "--wait=false");
}, 180_000);

it("lets pods without the label start while no broker answers", async () => {
  await kube("scale", `deployment/${RELEASE}-broker`, "--replicas=0");
  const brokers = () => kube("get", "pods", "--selector", "app.kubernetes.io/component=broker", "--output", "name");
  await expect.poll(brokers, { ...POLL, timeout: 60_000 }).toBe("");
  const pod = (name: string, labels: Record<string, string>) => ({
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name, labels } },
    spec: podSpec({ image: "localhost/pause:1" }),
  });
  await expect(apply(pod("labelled", { "sluice.dev/gpu": "0.5" }))).rejects.toThrow('"pods.sluice.dev"');
  await expect(apply(pod("memory", { "sluice.dev/gpu-memory": "1G" }))).rejects.toThrow('"memory.pods.sluice.dev"');
  await apply(pod("plain", {}));
  await kube("wait", "pod/plain", "--namespace", JOBS, "--for=condition=ready", "--timeout=30s");
}, 120_000);
