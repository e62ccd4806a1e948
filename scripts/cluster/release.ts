/** The chart installed on the test cluster as a newcomer installs it, and the people who use it, for the chart's tests. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { V1Pod } from "@kubernetes/client-node";
import { chromium, type Page } from "@playwright/test";
import { eq } from "drizzle-orm";
import { expect } from "vitest";
import { kubernetesFolder } from "#scripts/cluster/build.ts";
import { CHROMIUM } from "#scripts/lib/chromium.ts";
import { openDatabase } from "#server/db/client.ts";
import { gpuServers, leases, workspaces } from "#server/db/schema/index.ts";
import { runCode } from "#server/jupyter/run-code.ts";
import { makeVolumes, storageClassOf, type TestCluster } from "#server/launchers/kubernetes/testing.ts";
import { Notebook } from "../../e2e/fixtures/notebook.ts";
import { openLab, signIn } from "../../e2e/fixtures/portal.ts";

const execute = promisify(execFile);
const KUBECTL = path.join(kubernetesFolder(), "kubectl");

/** The release's name; each release has a namespace of its own. */
export const RELEASE = "sluice";
export const CHART = path.resolve("deploy/helm/sluice");
/** The node that lends its devices and runs the release's pods. */
export const NODE = "node-1";
// What browsers know: without TLS they keep cookies for such names alone.
const PORTAL_URL = "http://portal.localhost";
export const GATEWAY_HOST = "notebooks.localhost";
export const ADMIN = { name: "First Admin", email: "admin@example.com", password: "correct horse battery staple" };

export const POLL = { timeout: 120_000, interval: 300 };

/** A file that ends the computing of `kmeans` and others in a workspace. */
export const END = "/tmp/end";

/** An image's name in the chart's values. */
export const imageValues = (name: string) => {
  const at = name.lastIndexOf(":");
  return { repository: name.slice(0, at), tag: name.slice(at + 1), pullPolicy: "Never" };
};

const small = { cpu: { request: "100m", limit: "2" }, memory: { request: "256Mi", limit: "2Gi" } };
const light = { requests: { cpu: "20m", memory: "64Mi" }, limits: { memory: "1Gi" } };

/** Addresses of services: fixed, because this cluster has no DNS. */
export type Addresses = { portal: string; gateway: string; broker: string; postgres: string };

/** The values of a release whose teams' namespaces begin with `prefix`, which is also what sets its volumes apart. */
export function releaseValues(cluster: TestCluster, { prefix, address }: { prefix: string; address: Addresses }) {
  const storageClass = storageClassOf(prefix);
  return {
    images: {
      controlPlane: imageValues(cluster.controlPlaneImage),
      gpud: imageValues(cluster.gpudImage),
      client: imageValues(cluster.clientImage),
    },
    postgres: {
      enabled: true,
      clusterIP: address.postgres,
      storage: { size: "1Gi", storageClass },
      resources: light,
    },
    portal: { url: PORTAL_URL, replicas: 1, service: { clusterIP: address.portal }, resources: light },
    gateway: {
      url: `http://${GATEWAY_HOST}`,
      host: GATEWAY_HOST,
      replicas: 1,
      service: { clusterIP: address.gateway },
      drainSeconds: 2,
      resources: light,
    },
    broker: {
      url: `https://${address.broker}:3001`,
      replicas: 2,
      service: { clusterIP: address.broker },
      resources: light,
    },
    workspaces: {
      namespacePrefix: prefix,
      environments: { "cuda-python": { image: cluster.workspaceImage, size: "small", pull: "Never" } },
      sizes: { small },
      home: { size: "1Gi", storageClass },
      team: { quota: { "limits.memory": "64Gi" } },
      network: { to: [{ addresses: "10.0.0.0/8" }] },
    },
    gpud: {
      backend: "soft",
      stateDirectory: path.join(cluster.folder, `gpud-${prefix}`),
      args: ["--soft-memory", "2G"],
      resources: light,
    },
  };
}

type Options = { namespace: string; prefix: string; address: Addresses; volumes: number; values: object };
type Answer<T> = { status: number; body: T };

/** Limit of a notebook's cell. Some hold a GPU while the release is upgraded, which takes minutes on a slow machine. */
const NOTEBOOK_MS = 300_000;

/** A person with a browser's cookies. */
export class Person {
  readonly #portal: string;
  readonly #cookies = new Map<string, string>();

  constructor(address: Pick<Addresses, "portal">) {
    this.#portal = `http://${address.portal}`;
  }

  async ask<T>(method: string, where: string, body?: unknown): Promise<Answer<T>> {
    const form = body instanceof URLSearchParams;
    const response = await fetch(`${this.#portal}${where}`, {
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

  /** Launches a workspace and returns its id at once. */
  async launch(name: string, more: object = {}): Promise<string> {
    const wanted = { name, image: "cuda-python", ...more };
    const launched = await this.ask<{ id: string }>("POST", "/api/v1/workspaces", wanted);
    expect(launched.status, JSON.stringify(launched.body)).toBe(201);
    return launched.body.id;
  }
}

/** A release of the chart. Call `begin` in `beforeAll` and `end` in `afterAll`. */
export class Release {
  readonly #cluster: TestCluster;
  readonly #options: Options;
  readonly #env: NodeJS.ProcessEnv;
  #folder: string | undefined;
  #database: ReturnType<typeof openDatabase> | undefined;
  #dropVolumes: (() => Promise<void>) | undefined;
  readonly admin: Person;

  constructor(cluster: TestCluster, options: Options) {
    this.#cluster = cluster;
    this.#options = options;
    this.#env = { ...process.env, KUBECONFIG: cluster.kubeconfig };
    this.admin = new Person(options.address);
  }

  async begin(): Promise<void> {
    const { prefix, volumes, values } = this.#options;
    this.#folder = await mkdtemp(path.join(tmpdir(), `sluice-${prefix}-`));
    this.#dropVolumes = await makeVolumes(this.#cluster, volumes, { storageClass: storageClassOf(prefix) });
    await this.writeValues(values);
  }

  /** Ends what the release runs; what it leaves goes with the cluster, and is waited for by nobody. */
  async end(): Promise<void> {
    const { namespace, prefix } = this.#options;
    await this.#database?.close();
    await this.helm("uninstall", RELEASE).catch((error: unknown) => console.error(error));
    const names = (await this.kube("get", "namespaces", "--output", "name")).split("\n");
    const ours = names.filter((name) => name === `namespace/${namespace}` || name.startsWith(`namespace/${prefix}-`));
    if (ours.length > 0) await this.kube("delete", ...ours, "--wait=false").catch(() => "");
    await this.#dropVolumes?.();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** A folder for files of the test. */
  get folder(): string {
    if (this.#folder === undefined) throw new Error("The release has not begun.");
    return this.#folder;
  }

  get database(): ReturnType<typeof openDatabase> {
    if (this.#database === undefined) throw new Error("The database has not been opened.");
    return this.#database;
  }

  get valuesFile(): string {
    return path.join(this.folder, "values.json");
  }

  async writeValues(values: object): Promise<void> {
    await writeFile(this.valuesFile, JSON.stringify(values));
  }

  /** Runs kubectl in the release's namespace. */
  async kube(...args: string[]): Promise<string> {
    const place = ["--namespace", this.#options.namespace];
    return (await execute(KUBECTL, [...place, ...args], { env: this.#env, maxBuffer: 1 << 24 })).stdout;
  }

  /** Runs Helm; a failure also tells what the pods say. */
  async helm(...args: string[]): Promise<string> {
    try {
      const home = { HELM_CACHE_HOME: this.folder, HELM_CONFIG_HOME: this.folder, HELM_DATA_HOME: this.folder };
      const words = [...args, "--namespace", this.#options.namespace];
      return (await execute(this.#cluster.helm, words, { env: { ...this.#env, ...home }, maxBuffer: 1 << 24 })).stdout;
    } catch (error) {
      const [pods, events] = await Promise.all([
        this.kube("get", "pods", "--output", "wide"),
        this.kube("get", "events", "--sort-by", ".lastTimestamp"),
      ]);
      const ours = ["--selector", "app.kubernetes.io/name=sluice", "--all-containers", "--ignore-errors"];
      const logs = await this.kube("logs", ...ours, "--prefix", "--tail", "8").catch(String);
      throw new Error([String(error), pods, events.split("\n").slice(-25).join("\n"), logs].join("\n"));
    }
  }

  async install(): Promise<void> {
    const place = ["--create-namespace", "--values", this.valuesFile];
    await this.helm("install", RELEASE, CHART, ...place, "--wait", "--wait-for-jobs", "--timeout", "300s");
  }

  /** Opens the set-up link that the migration's log shows, and signs its admin in. */
  async signUpAdmin(): Promise<void> {
    const log = await this.kube("logs", `job/${RELEASE}-migrate-1`);
    const code = /setup\?code=(\S+)/.exec(log)?.[1];
    expect(code, log).toBeDefined();
    expect((await this.admin.ask("POST", "/api/v1/setup", { code, ...ADMIN })).status).toBe(201);
    await this.admin.signIn(ADMIN);
  }

  async openDatabase(): Promise<void> {
    const secret = JSON.parse(await this.kube("get", "secret", `${RELEASE}-postgres`, "--output", "json")) as {
      data: { url: string };
    };
    const url = Buffer.from(secret.data.url, "base64").toString();
    this.#database = openDatabase(url, { max: 2, applicationName: "test" });
  }

  /** The release's pods of a component, by the API and without a program for each look. */
  async pods(component: string): Promise<V1Pod[]> {
    const { items } = await this.#cluster.objects.list<V1Pod>(
      ...(["v1", "Pod", this.#options.namespace, undefined, undefined, undefined, undefined] as const),
      `app.kubernetes.io/component=${component}`,
    );
    return items;
  }

  /** `name state` of the pool's servers. */
  async servers(): Promise<string[]> {
    return (await this.database.db.select().from(gpuServers)).map((one) => `${one.name} ${one.state}`);
  }

  /** Waits until the gpud of the node has joined the pool. */
  async untilLent(): Promise<void> {
    await expect
      .poll(() => this.servers(), { timeout: 120_000, interval: 500 })
      .toEqual([`${NODE} online`])
      .catch(async (error: unknown) => {
        throw new Error(`${String(error)}\n${await this.kube("logs", `daemonset/${RELEASE}-gpud`)}`);
      });
  }

  async row(id: string) {
    const [found] = await this.database.db.select().from(workspaces).where(eq(workspaces.id, id));
    if (found === undefined) throw new Error("no workspace");
    return found;
  }

  async untilRunning(id: string): Promise<void> {
    const observed = async () => {
      const { observed: state, message } = await this.row(id);
      return `${state} ${message ?? ""}`;
    };
    await expect.poll(observed, { timeout: 120_000, interval: 300 }).toBe("running ");
  }

  async inNotebook(id: string, code: string): Promise<string> {
    const { endpoint, serverToken } = await this.row(id);
    const server = { endpoint: endpoint ?? "", token: serverToken ?? "" };
    return await runCode(server, code, { timeoutMs: NOTEBOOK_MS });
  }

  /** The states of the leases that are open. */
  async heldBy(): Promise<string[]> {
    return (await this.database.db.select().from(leases)).flatMap(({ state }) => (state === "ended" ? [] : [state]));
  }

  /** The admin's workspace in a browser, opened through portal and gateway; and the portal, in another tab. */
  async inChromium(
    { id, name }: { id: string; name: string },
    work: (notebook: Notebook, portal: Page) => Promise<void>,
  ): Promise<void> {
    const { portal, gateway } = this.#options.address;
    const browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: [
        ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"],
        // This cluster has no DNS.
        `--host-resolver-rules=MAP portal.localhost ${portal}, MAP *.${GATEWAY_HOST} ${gateway}`,
      ],
    });
    try {
      const page = await (await browser.newContext({ baseURL: PORTAL_URL })).newPage();
      await signIn(page, ADMIN.email);
      const lab = await openLab(page, name);
      expect(new URL(lab.url()).host).toBe(`${id}.${GATEWAY_HOST}`);
      await work(await Notebook.create(lab), page);
    } finally {
      await browser.close();
      await this.#endNotebooks(id);
    }
  }

  /** Ends the notebooks' kernels, and with them what is parked for them; JupyterLab opens none of them again. */
  async #endNotebooks(id: string): Promise<void> {
    const { endpoint, serverToken } = await this.row(id);
    const headers = { authorization: `token ${serverToken}` };
    await fetch(`${endpoint}/lab/api/workspaces/default`, { method: "DELETE", headers });
    const kernels = (await (await fetch(`${endpoint}/api/kernels`, { headers })).json()) as { id: string }[];
    for (const kernel of kernels) await fetch(`${endpoint}/api/kernels/${kernel.id}`, { method: "DELETE", headers });
  }
}

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
    # It computes to be seen, and the other tests need the processors.
    time.sleep(0.02)
print("centres", np.abs(centres - truth).max() < 0.1)
%gpu detach`;

/** A k-means for notebooks, which goes on for as long as that Python expression holds. */
export const kmeans = (goesOn = "False") => KMEANS.replace("GOES_ON", goesOn);
