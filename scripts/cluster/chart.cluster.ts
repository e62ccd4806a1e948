/** The chart on a real Kubernetes: installed as a newcomer does, and used as people do. */
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { CoreV1Event } from "@kubernetes/client-node";
import { eq, ne } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { kubernetesVersion } from "#scripts/cluster/build.ts";
import {
  ADMIN,
  CHART,
  GATEWAY_HOST,
  kmeans,
  NODE,
  Person,
  POLL,
  RELEASE,
  Release,
  releaseValues,
} from "#scripts/cluster/release.ts";
import { LOCKS } from "#server/broker/reconciler/leadership.ts";
import { leases, workspaceEvents, workspaces } from "#server/db/schema/index.ts";
import { send } from "#server/gateway/testing.ts";
import { namespaceOf } from "#server/launchers/kubernetes/objects.ts";
import { testCluster } from "#server/launchers/kubernetes/testing.ts";

const cluster = testCluster();
const NAMESPACE = "sluice-test";
/** Where people run jobs of their own: a namespace that Sluice has not made. */
const JOBS = "jobs-test";
const MEMBER = { name: "Second Person", email: "scientist@example.com", password: "another horse battery staple" };
const address = { portal: "10.96.7.1", gateway: "10.96.7.2", broker: "10.96.7.3", postgres: "10.96.7.4" };
/** Label of a node where workspaces of the size Large run; no node has it at first. */
const HELD = "test.sluice.dev/chart-held";

const common = releaseValues(cluster, { prefix: "chart", address });
const values = {
  ...common,
  workspaces: {
    ...common.workspaces,
    sizes: {
      ...common.workspaces.sizes,
      large: { ...common.workspaces.sizes.small, nodeSelector: { [HELD]: "later" } },
    },
  },
  pods: { enabled: true, namespaces: { [JOBS]: [{ team: "demo", person: ADMIN.email }] } },
};
const release = new Release(cluster, { namespace: NAMESPACE, prefix: "chart", address, volumes: 3, values });
const { admin } = release;
const scientist = new Person(address);

beforeAll(async () => await release.begin());
afterAll(async () => {
  await release.kube("delete", "namespace", JOBS, "--wait=false").catch(() => "");
  await release.end();
  await release.kube("label", "node", NODE, "sluice.dev/gpu-host-", `${HELD}-`).catch(() => "");
});

it("installs", async () => await release.install(), 340_000);

it("shows the set-up link in the migration's log, and its admin signs in", async () => {
  await release.signUpAdmin();
  const page = await admin.ask("GET", "/workspaces");
  expect(page.status).toBe(200);
  expect(page.body).toContain("Workspaces");
});

it("lends the devices of a node that is labelled, by a gpud that joined with its account", async () => {
  await release.openDatabase();
  expect(await release.servers()).toEqual([]);
  await release.kube("label", "node", NODE, "sluice.dev/gpu-host=true");
  await release.untilLent();
});

it("gives gpud two capabilities, no account of the cluster and nothing to write but its state", async () => {
  const inside = await release.kube(
    ...["exec", `daemonset/${RELEASE}-gpud`, "--", "sh", "-c"],
    "grep -E 'CapEff|Seccomp:|NoNewPrivs' /proc/1/status; ls /var/run/secrets; touch /etc/x 2>&1 || true",
  );
  // CAP_SETGID and CAP_SETUID, by which its workers become nobody.
  expect(inside.replaceAll(/\s+/g, " ")).toContain("CapEff: 00000000000000c0 NoNewPrivs: 1 Seccomp: 2 sluice");
  expect(inside).toContain("Read-only file system");
});

it("refuses a token of another account of the cluster, for others, or of no pod, and a second server by a gpud's", async () => {
  const token = (await release.kube("create", "token", `${RELEASE}-portal`, "--audience", "sluice")).trim();
  const wrong = (await release.kube("create", "token", `${RELEASE}-gpud`, "--audience", "elsewhere")).trim();
  const ofNoPod = (await release.kube("create", "token", `${RELEASE}-gpud`, "--audience", "sluice")).trim();
  const answerTo = async (one: string) => {
    const body = JSON.stringify({ token: one, name: "stranger", publicKey: "A".repeat(43) });
    return await release.kube(
      ...["exec", `deployment/${RELEASE}-portal`, "--container", "portal", "--"],
      ...["/opt/sluice/node", "--eval"],
      `fetch(process.env.SLUICE_BROKER_URL + "/v1/gpu-servers/join", { method: "POST", headers: { "content-type": "application/json" }, body: ${JSON.stringify(body)} }).then(async (answer) => console.log(answer.status, await answer.text()))`,
    );
  };
  for (const one of [token, wrong, ofNoPod]) expect(await answerTo(one)).toMatch(/^403 .*join token is not valid/);
  const gpuds = (
    await release.kube("exec", `daemonset/${RELEASE}-gpud`, "--", "cat", "/var/run/secrets/sluice/token")
  ).trim();
  expect(await answerTo(gpuds)).toMatch(/^409 .*has another GPU server in the pool/);
});

let first: string;

it("launches a workspace as a pod, and opens JupyterLab through the gateway", async () => {
  first = await admin.launch("first");
  await release.untilRunning(first);
  const { url } = (await admin.ask<{ url: string }>("POST", `/api/v1/workspaces/${first}/open`)).body;
  const way = new URL(url);
  expect(way.host).toBe(`${first}.${GATEWAY_HOST}`);
  const at = { host: way.host, address: address.gateway };
  const entered = await send(80, { ...at, path: `${way.pathname}${way.search}` });
  const cookie = (entered.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
  const lab = await send(80, { ...at, path: "/lab", headers: { cookie, accept: "text/html" } });
  expect(lab.status).toBe(200);
  expect(lab.body).toContain("jupyter-config-data");
}, 400_000);

it("computes a k-means on half a GPU of that gpud", async () => {
  expect(await release.inNotebook(first, kmeans())).toContain("centres True");
}, 400_000);

it("is used in Chromium: sign-in, JupyterLab through the gateway, and a cell that borrows half a GPU", async () => {
  await release.inChromium({ id: first, name: "first" }, async (notebook, portal) => {
    const printed = await notebook.run(kmeans());
    expect(printed).toContain("Attached 0.5");
    expect(printed).toContain("centres True");
    // What the pod prints from now on is on its page as it comes.
    await portal.goto(`/workspaces/${first}/log`);
    const log = portal.getByRole("log", { name: "Log of start 1" });
    await log.waitFor();
    const { endpoint, serverToken } = await release.row(first);
    await fetch(`${endpoint}/api/contents/is-not-there`, { headers: { authorization: `token ${serverToken}` } });
    await expect.poll(() => log.textContent(), POLL).toContain("404 GET /api/contents/is-not-there");
  });
}, 400_000);

/** The broker that leads holds the lock of the leader on a connection from its pod. */
async function leadingBroker(): Promise<string> {
  const [leader] = await release.database.sql<{ address: string }[]>`
    select host(client_addr) as address from pg_locks join pg_stat_activity using (pid)
    where locktype = 'advisory' and objid = ${LOCKS.reconciler} and granted`;
  const found = (await release.pods("broker")).find(({ status }) => status?.podIP === leader?.address);
  if (found?.metadata?.name === undefined) throw new Error(`no pod leads (${leader?.address})`);
  return found.metadata.name;
}

/** All that the page of a workspace tells of its start. */
async function startOf(id: string): Promise<string> {
  const events = await release.database.db.select().from(workspaceEvents).where(eq(workspaceEvents.workspaceId, id));
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
  // So that the launch cannot come to its end before its broker does: no node takes that size meanwhile.
  const size = "Large";
  try {
    second = await scientist.launch("second", { size });
    const observed = async () => (await release.row(second)).observed;
    await expect.poll(() => startOf(second), POLL).toContain(`no node has the label ${HELD}=later`);
    expect(await leadingBroker()).toBe(leader);
    await release.kube("delete", "pod", leader, "--force", "--grace-period=0");
    expect(await observed()).toBe("starting");
    // While its process ends it may still hold the lock, and then nobody does.
    await expect.poll(() => leadingBroker().catch(() => leader), POLL).not.toBe(leader);
    expect(await observed()).toBe("starting");
  } finally {
    await release.kube("label", "node", NODE, `${HELD}=later`);
  }
  await release.untilRunning(second);
}, 400_000);

it("answers every request while the portal's pod is replaced", async () => {
  const names = async () =>
    (await release.kube("get", "pods", "--selector", "app.kubernetes.io/component=portal", "--output", "name")).trim();
  const before = await names();
  await release.kube("rollout", "restart", `deployment/${RELEASE}-portal`);
  const replaced = release.kube("wait", before, "--for=delete", "--timeout=100s");
  let waiting = true;
  const noLonger = () => (waiting = false);
  replaced.then(noLonger, noLonger);
  const answers = new Set<string>();
  while (waiting) {
    // Each by a connection of its own.
    const answer = send(80, { address: address.portal, host: "portal.localhost", path: "/healthz" });
    answers.add(await Promise.race([answer.then(({ status }) => `${status}`, String), sleep(10_000, "none in time")]));
    await sleep(30);
  }
  await replaced;
  expect(await names()).not.toBe(before);
  expect([...answers]).toEqual(["200"]);
}, 400_000);

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
  const computing = Promise.all(both.map((id) => release.inNotebook(id, kmeans(`not os.path.exists("${seen}")`))));
  await expect.poll(() => release.heldBy(), POLL).toEqual(["active", "active"]);
  const { workspaceId, gpuId, state } = leases;
  const held = await release.database.db.select({ workspaceId, gpuId }).from(leases).where(ne(state, "ended"));
  expect(held.map((lease) => lease.workspaceId).sort()).toEqual(both.toSorted());
  expect(new Set(held.map((lease) => lease.gpuId)).size).toBe(1);
  for (const id of both) await release.inNotebook(id, `open("${seen}", "w")`);
  for (const printed of await computing) expect(printed).toContain("centres True");
}, 400_000);

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
  const file = path.join(release.folder, "object.json");
  await writeFile(file, JSON.stringify(object));
  return await release.kube("create", "--namespace", namespace, "--filename", file);
}
async function job(name: string, labels: Record<string, string>, container: Record<string, unknown>): Promise<void> {
  const template = { metadata: { labels }, spec: podSpec(container) };
  await apply({ apiVersion: "batch/v1", kind: "Job", metadata: { name }, spec: { backoffLimit: 0, template } });
}
/** What is told on the pods of a job: `reason: message`, in order. */
async function told(name: string): Promise<string[]> {
  const { items } = await cluster.objects.list<CoreV1Event>("v1", "Event", JOBS);
  return items
    .filter(({ involvedObject }) => involvedObject.name?.startsWith(`${name}-`))
    .sort((a, b) => (a.firstTimestamp?.valueOf() ?? 0) - (b.firstTimestamp?.valueOf() ?? 0))
    .map(({ reason, message }) => `${reason}: ${message}`);
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
  const given = "/tmp/given";
  const hold = `import os, time\nwhile not os.path.exists("${given}"):\n    time.sleep(0.2)`;
  const holding = release.inNotebook(first, `%gpu attach 1\n${hold}\n%gpu detach`);
  const active = () =>
    release.database.db.select({ milli: leases.milli }).from(leases).where(eq(leases.state, "active"));
  await expect.poll(active, POLL).toEqual([{ milli: 1000 }]);
  const python = ["/opt/sluice/environment/bin/python", "-c", SUM];
  const label = { "sluice.dev/gpu": "0.5" };
  await job("sum", { ...label, "sluice.dev/gpu-wait": "2m" }, { image: cluster.workspaceImage, command: python });
  await job("bare", { "sluice.dev/gpu-memory": "1G" }, { image: cluster.bareImage, command: ["/program"] });
  await expect
    .poll(() => told("sum"), POLL)
    .toContainEqual(expect.stringMatching(/^GpuQueued: Waits for 0.5 soft, 1 of 1/));
  await release.inNotebook(first, `open("${given}", "w")`);
  expect(await holding).toContain("Attached 1");
  await release.kube("wait", "job/sum", "--namespace", JOBS, "--for=condition=complete", "--timeout=60s");
  const log = await release.kube("logs", "job/sum", "--namespace", JOBS, "--container", "main");
  expect(log).toContain("sum True /sluice/lib/libcuda.so.1");
  expect(await told("sum")).toContainEqual(expect.stringMatching(/^GpuBorrowed: Borrowed 0.5 GPU: soft-0 on node-1/));
  const held = async () =>
    (
      await release.database.db
        .select({ name: workspaces.name, desired: workspaces.desired, milli: leases.milli, reason: leases.endReason })
        .from(leases)
        .innerJoin(workspaces, eq(workspaces.id, leases.workspaceId))
        .where(eq(workspaces.launcher, "pod"))
    ).map(({ name, ...rest }) => ({ ...rest, name: name.replace(/-\w+$/, "") }));
  const back = { name: `${JOBS}/sum`, desired: "removed", milli: 500, reason: "given back" };
  await expect.poll(held, POLL).toEqual([back]);
}, 400_000);

it("refuses an image without glibc on its pod, and a namespace that belongs to no team at once", async () => {
  const refusal: unknown = expect.stringMatching(/^GpuNotBorrowed: The image of container main .* it has no glibc/);
  await expect.poll(() => told("bare"), POLL).toContainEqual(refusal);
  await release.kube("wait", "job/bare", "--namespace", JOBS, "--for=condition=failed", "--timeout=30s");
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "stranger", labels: { "sluice.dev/gpu": "0.5" } },
    spec: podSpec({ image: cluster.bareImage }),
  };
  await expect(apply(pod, "default")).rejects.toThrow("The namespace default belongs to no team of Sluice");
}, 400_000);

it("lets the broker's account write into namespaces of its teams, and outside of them what is Sluice's alone", async () => {
  const as = ["--as", `system:serviceaccount:${NAMESPACE}:${RELEASE}-broker`, "--dry-run=server"];
  const team = namespaceOf({ namespacePrefix: "chart" }, (await release.row(first)).teamId);
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
    const file = path.join(release.folder, "put.json");
    const { spec, type, data, ...metadata } = more;
    const object = { apiVersion: "v1", kind, metadata: { name, namespace, ...metadata }, spec, type, data };
    await writeFile(file, JSON.stringify(object));
    const place = namespace === undefined ? [] : ["--namespace", namespace];
    return await outcome(release.kube("apply", "--server-side", "--filename", file, ...as, ...place));
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
    ownDeleted: await outcome(release.kube("delete", "secret", `${RELEASE}-keys`, ...as)),
    newTeam: await puts("Namespace", "chart-team-next", undefined, { labels }),
    newTeamForAnyPod: await puts("Namespace", "chart-team-next"),
    namespace: await puts("Namespace", "default", undefined, { labels }),
    volume: await puts("PersistentVolume", "ws-any-dst-any", undefined, exported),
    othersVolume: await puts("PersistentVolume", "homes-1", undefined, exported),
    nodesVolume: await puts("PersistentVolume", "ws-any-dst-any", undefined, ofNode),
    ownDatabase: await outcome(release.kube("delete", "pod", `${RELEASE}-postgres-0`, ...as)),
    gpud: await outcome(release.kube("delete", "pod", "--selector", "app.kubernetes.io/component=gpud", ...as)),
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
  await release.kube("rollout", "status", "deployment/serves", "--namespace", JOBS, "--timeout=60s");
  expect(await release.heldBy()).toHaveLength(1);
  await release.kube("delete", "deployment/serves", "--namespace", JOBS, "--wait=false");
  await expect.poll(() => release.heldBy(), POLL).toEqual([]);
}, 400_000);

it("claims the devices that it lends from whatever else hands them out", async () => {
  const chart = CHART;
  const wanted = { resource: "example.com/gpu", count: "2" };
  const claim = Object.entries(wanted).flatMap(([name, value]) => ["--set", `gpud.claim.${name}=${value}`]);
  // Beside the other one on this node it is a server of its own.
  claim.push("--set", `gpud.stateDirectory=${path.join(cluster.folder, "claiming")}`);
  const made = await release.helm(
    "template",
    RELEASE,
    chart,
    "--kube-version",
    kubernetesVersion(),
    "--values",
    release.valuesFile,
    ...claim,
  );
  const [daemonSet = ""] = made.split("\n---\n").filter((one) => /^kind: DaemonSet$/m.test(one));
  const renamed = daemonSet.replace(/^ {2}name: .*$/m, "  name: claiming");
  // As a device plugin tells the node what it has.
  const capacity = JSON.stringify({ status: { capacity: { "example.com/gpu": "2" } } });
  await release.kube("patch", "node", "node-1", "--subresource=status", "--type=merge", "--patch", capacity);
  const file = path.join(release.folder, "claiming.yaml");
  await writeFile(file, renamed.replaceAll(/(app\.kubernetes\.io\/component"?: ?"?)gpud/g, "$1claiming"));
  await release.kube("apply", "--filename", file);
  const phase = async (selector: string) =>
    await release.kube("get", "pods", "--selector", selector, "--output", "jsonpath={.items[*].status.phase}");
  await expect.poll(() => phase("app.kubernetes.io/component=claiming"), POLL).toBe("Running");
  const other = {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name: "other", labels: { other: "yes" } } },
    spec: podSpec({ image: "localhost/pause:1", resources: { limits: { "example.com/gpu": 1 } } }),
  };
  await apply(other, NAMESPACE);
  const why = () => release.kube("get", "pod", "other", "--output", "jsonpath={.status.conditions[*].message}");
  await expect.poll(why, POLL).toContain("Insufficient example.com/gpu");
  await release.kube("delete", "--filename", file, "--wait=false");
  await expect.poll(() => phase("other=yes"), { ...POLL, timeout: 120_000 }).toBe("Running");
  await release.kube("delete", "pod", "other", "--wait=false");
}, 400_000);

it("lets pods without the label start while no broker answers", async () => {
  await release.kube("scale", `deployment/${RELEASE}-broker`, "--replicas=0");
  const brokers = () =>
    release.kube("get", "pods", "--selector", "app.kubernetes.io/component=broker", "--output", "name");
  await expect.poll(brokers, { ...POLL, timeout: 120_000 }).toBe("");
  const pod = (name: string, labels: Record<string, string>) => ({
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name, labels } },
    spec: podSpec({ image: "localhost/pause:1" }),
  });
  await expect(apply(pod("labelled", { "sluice.dev/gpu": "0.5" }))).rejects.toThrow('"pods.sluice.dev"');
  await expect(apply(pod("memory", { "sluice.dev/gpu-memory": "1G" }))).rejects.toThrow('"memory.pods.sluice.dev"');
  await apply(pod("plain", {}));
  await release.kube("wait", "pod/plain", "--namespace", JOBS, "--for=condition=ready", "--timeout=30s");
}, 400_000);
