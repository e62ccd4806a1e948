/** Whom a workspace's pod reaches, and who reaches it and the chart's own pods, where the cluster's network enforces NetworkPolicies. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { promisify } from "node:util";
import type { KubernetesObject, V1Pod } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { template, values } from "#scripts/cluster/chart.ts";
import { kubectl } from "#scripts/cluster/cluster.ts";
import { goProgram } from "#scripts/cluster/go-program.ts";
import { clusterAt } from "#scripts/cluster/place.ts";
import { enforcePolicies } from "#scripts/cluster/policies.ts";
import { useTestDatabase } from "#server/db/testing.ts";
import { JUPYTER_PORT, namespaceOf, podName } from "#server/launchers/kubernetes/objects.ts";
import {
  type Installation,
  smallSettings,
  startInstallation,
  testCluster,
} from "#server/launchers/kubernetes/testing.ts";

const execute = promisify(execFile);
const cluster = testCluster();
const machine = clusterAt();
/** Where the pods lie that stand for Sluice's servers; they only listen. */
const SERVERS = "policies-servers";
const METADATA = "169.254.169.254";
/** Where a cache of names answers pods on their own node, link-local as well. */
const NODE_LOCAL = "169.254.20.10";
/** Any other address outside the cluster. */
const OUTSIDE = "203.0.113.7";
const names = (component: string) => ({
  ...{ app: "sluice", component },
  // As the chart has them.
  ...{ "app.kubernetes.io/name": "sluice", "app.kubernetes.io/instance": "sluice" },
  "app.kubernetes.io/component": component,
});
const of = (component: string, ...ports: number[]) => ({
  namespace: { "kubernetes.io/metadata.name": SERVERS },
  pods: names(component),
  ...(ports.length > 0 && { ports }),
});
const settings = smallSettings(cluster, "policies", {
  // The test's own reconciler, too, which is on the node.
  network: {
    from: [of("gateway"), { addresses: `${cluster.address}/32` }],
    to: [of("broker", 3001), of("gpud", 3010), { addresses: "0.0.0.0/0", ports: [80] }],
    dns: [
      { namespace: { "kubernetes.io/metadata.name": "kube-system" }, pods: { "k8s-app": "kube-dns" } },
      of("names", 5353),
      // What stands for it answers there.
      { addresses: `${NODE_LOCAL}/32`, ports: [80] },
    ],
  },
});

const PYTHON = "/opt/sluice/environment/bin/python";
const LISTEN = `import http.server, sys, threading
for port in sys.argv[1:]:
    server = http.server.ThreadingHTTPServer(("", int(port)), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever).start()`;
/** Prints of each address whether somebody takes a connection there; all are tried at once, because a policy drops packets. */
const REACH = `import concurrent.futures, json, socket
def reaches(address):
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 2).close()
        return True
    except OSError:
        return False
def reached(addresses):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        print(json.dumps(dict(zip(addresses, pool.map(reaches, addresses.values())))))`;

type Server = { name: string; namespace: string; labels: Record<string, string>; ports: number[] };
const servers: Server[] = [
  { name: "broker", namespace: SERVERS, labels: names("broker"), ports: [3001, 3003, 3999] },
  { name: "gpud", namespace: SERVERS, labels: names("gpud"), ports: [3010] },
  { name: "gateway", namespace: SERVERS, labels: names("gateway"), ports: [3002] },
  { name: "postgres", namespace: SERVERS, labels: names("postgres"), ports: [5432] },
  { name: "stranger", namespace: SERVERS, labels: { app: "other" }, ports: [8080] },
  { name: "names", namespace: "kube-system", labels: { "k8s-app": "kube-dns" }, ports: [53] },
  { name: "own-names", namespace: SERVERS, labels: names("names"), ports: [5353, 53] },
];

function podOf({ name, namespace, labels, ports }: Server): V1Pod {
  return {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name, namespace, labels } },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          ...{ name: "listens", image: cluster.workspaceImage, imagePullPolicy: "Never" },
          command: [PYTHON, "-c", LISTEN, ...ports.map(String)],
          securityContext: { runAsUser: 0 },
          workingDir: "/tmp",
          readinessProbe: { tcpSocket: { port: ports[0] ?? 0 }, periodSeconds: 1 },
        },
      ],
    },
  };
}

let installation: Installation;
let outside: ChildProcess | undefined;
let stopEnforcing: () => Promise<void>;
let first: string;
let second: string;
const made: KubernetesObject[] = [];
beforeAll(async () => {
  outside = await makeOutside();
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: SERVERS } };
  for (const object of [namespace, ...servers.map(podOf)]) {
    await cluster.objects.create(object);
    made.unshift(object);
  }
  installation = await startInstallation(await useTestDatabase({ max: 10 }), cluster, { settings, homes: 2 });
  [first, second] = await Promise.all([installation.launch("first"), installation.launch("second")]);
  for (const id of [first, second]) await installation.observed(id, "running$");
  for (const { name, namespace: where } of servers)
    await kubectl(machine, "wait", "--for=condition=Ready", `pod/${name}`, "--namespace", where, "--timeout=60s");
}, 400_000);
afterAll(async () => {
  await stopEnforcing?.();
  await installation?.stop();
  for (const object of made) await cluster.objects.delete(object, undefined, undefined, 0).catch(() => undefined);
  if (outside === undefined) return;
  outside.kill();
  await execute("ip", ["netns", "del", "sluice-outside"]);
});

/** A machine outside the cluster, also at the link-local addresses of clouds' credentials and of names. It answers on port 80. */
async function makeOutside(): Promise<ChildProcess> {
  const ip = async (...args: string[]) => await execute("ip", args);
  await ip("netns", "add", "sluice-outside");
  await ip("link", "add", "to-outside", "type", "veth", "peer", "name", "to-cluster", "netns", "sluice-outside");
  await ip("link", "set", "to-outside", "up");
  for (const link of ["lo", "to-cluster"]) await ip("-n", "sluice-outside", "link", "set", link, "up");
  for (const address of [METADATA, NODE_LOCAL, OUTSIDE]) {
    await ip("route", "add", address, "dev", "to-outside", "src", cluster.address);
    await ip("-n", "sluice-outside", "addr", "add", `${address}/32`, "dev", "to-cluster");
  }
  await ip("-n", "sluice-outside", "route", "add", "default", "dev", "to-cluster");
  const serve = ["netns", "exec", "sluice-outside", "python3", "-m", "http.server", "80"];
  return spawn("ip", serve, { stdio: "ignore" });
}

async function addressOf(name: string, namespace: string): Promise<string> {
  const path = "jsonpath={.status.podIP}";
  return await kubectl(machine, "get", "pod", name, "--namespace", namespace, "-o", path);
}
const workspaceAddress = async (id: string) => {
  const { teamId, generation } = await installation.row(id);
  return await addressOf(podName({ id, generation }), namespaceOf(settings, teamId));
};

const at = async (name: string, port: number, namespace = SERVERS) => `${await addressOf(name, namespace)}:${port}`;

/** What a workspace reaches, by name. */
async function reachedFromWorkspace(): Promise<unknown> {
  const addresses = {
    broker: await at("broker", 3001),
    "the broker's figures": await at("broker", 3003),
    "another port of the broker's": await at("broker", 3999),
    gpud: await at("gpud", 3010),
    names: await at("names", 53, "kube-system"),
    "names on their own port": await at("own-names", 5353),
    "another port of theirs": await at("own-names", 53),
    "names on the node": `${NODE_LOCAL}:80`,
    stranger: await at("stranger", 8080),
    "another workspace": `${await workspaceAddress(second)}:${JUPYTER_PORT}`,
    outside: `${OUTSIDE}:80`,
    metadata: `${METADATA}:80`,
  };
  const code = `${REACH}\nreached(${JSON.stringify(addresses)})`;
  return JSON.parse(await installation.inNotebook(first, code));
}

/** Which of these addresses a pod of the servers' reaches. */
async function reachedFrom(name: string, addresses: Record<string, string>): Promise<Record<string, boolean>> {
  const code = `${REACH}\nreached(${JSON.stringify(addresses)})`;
  const printed = await kubectl(machine, "exec", name, "--namespace", SERVERS, "--", PYTHON, "-c", code);
  return JSON.parse(printed) as Record<string, boolean>;
}

/** Whether a pod of these reaches a workspace's server. */
async function reachesWorkspace(name: string): Promise<boolean | undefined> {
  return (await reachedFrom(name, { it: `${await workspaceAddress(first)}:${JUPYTER_PORT}` })).it;
}

const everything = {
  ...{ broker: true, "the broker's figures": true, "another port of the broker's": true, gpud: true, names: true },
  ...{ "names on their own port": true, "another port of theirs": true, "names on the node": true },
  ...{ stranger: true, "another workspace": true, outside: true, metadata: true },
};

it("reaches and is reached by everybody where nothing enforces policies", async () => {
  expect(await reachedFromWorkspace()).toEqual(everything);
  for (const name of ["gateway", "stranger"]) expect(await reachesWorkspace(name), name).toBe(true);
});

it("reaches what it may, and never the address at which clouds hand out credentials", async () => {
  stopEnforcing = await enforcePolicies(machine, await goProgram(process.cwd(), "policies"));
  expect(await reachedFromWorkspace()).toEqual({
    ...everything,
    "the broker's figures": false,
    "another port of the broker's": false,
    "another port of theirs": false,
    stranger: false,
    "another workspace": false,
    metadata: false,
  });
});

it("is reached by the gateway alone", async () => {
  expect(await reachesWorkspace("gateway")).toBe(true);
  expect(await reachesWorkspace("stranger")).toBe(false);
});

it("has a database that the control plane reaches alone, and servers that anybody reaches on their ports, by the chart's policies", async () => {
  const addresses = {
    database: await at("postgres", 5432),
    broker: await at("broker", 3001),
    "another port of the broker's": await at("broker", 3999),
    gpud: await at("gpud", 3010),
  };
  const before = { database: true, broker: true, "another port of the broker's": true, gpud: true };
  expect(await reachedFrom("stranger", addresses)).toEqual(before);
  const chart = await template(cluster, { ...values, database: {}, postgres: { enabled: true } });
  for (const policy of chart.filter(({ kind }) => kind === "NetworkPolicy"))
    await cluster.objects.create({ ...policy, metadata: { ...policy.metadata, namespace: SERVERS } });
  const after = { ...before, "another port of the broker's": false };
  const polled = { timeout: 120_000, interval: 500 };
  await expect.poll(() => reachedFrom("stranger", addresses), polled).toEqual({ ...after, database: false });
  expect(await reachedFrom("gpud", addresses)).toEqual({ ...after, database: false });
  expect(await reachedFrom("gateway", addresses)).toEqual(after);
});
