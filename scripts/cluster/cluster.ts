/**
 * Brings Kubernetes up and down: a control plane with its node, and further nodes for tests that need some. Each node is
 * in a network namespace of its own, so that it listens on no address of the machine; its kubelet and containerd are in
 * a mount namespace of their own, because they use fixed paths.
 * Each process is known by its pid and start time, and only those are ever ended.
 */
import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, open, readdir, readFile, rm, rmdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { z } from "zod";
import { makeCertificates } from "#scripts/cluster/certificates.ts";
import { type Cluster, furtherNode, POOL, socketOf } from "#scripts/cluster/place.ts";
import { containerdConfig, kubeconfig, kubeletConfig, podNetwork } from "#scripts/cluster/settings.ts";
import { isAlive, type ProcessStart, processStat } from "#server/launchers/local/processes.ts";

const execute = promisify(execFile);

const SERVICES = "10.96.0.0/16";
/** What belongs to a node alone. */
const NODE_FOLDERS = ["log", "pid", "command", "kubelet", "containerd", "cni"];
/** Kernel settings of the whole machine that a cluster changes and puts back. All but the last are set by kubelet. */
const WATCHES = "fs.inotify.max_user_instances";
const KERNEL_SETTINGS = ["vm.overcommit_memory", "kernel.panic", "kernel.panic_on_oops", WATCHES];
/** The kernel's default of 128 is little for five kubelets. */
const LEAST_WATCHES = 1_024;

/** Whether its API server runs and answers. */
export async function isUp(cluster: Cluster): Promise<boolean> {
  const known = await readProcess(cluster, "kube-apiserver");
  return (
    known !== undefined &&
    (await isAlive(known)) &&
    (await kubectl(cluster, "get", "--raw", "/readyz").then(
      () => true,
      () => false,
    ))
  );
}

/** Runs kubectl as the cluster's admin; gives what it printed. */
export async function kubectl(cluster: Cluster, ...args: string[]): Promise<string> {
  const { stdout } = await inside(
    cluster,
    path.join(cluster.bin, "kubectl"),
    "--kubeconfig",
    cluster.kubeconfig,
    ...args,
  );
  return stdout;
}

/** Makes a namespace, and first ends one of that name that an earlier run has left. */
export async function makeNamespace(cluster: Cluster, name: string): Promise<void> {
  await kubectl(cluster, "delete", "namespace", name, "--ignore-not-found");
  await kubectl(cluster, "create", "namespace", name);
}

/** Runs containerd's own client in the namespace of the pods' images. */
export async function ctr(cluster: Cluster, ...args: string[]): Promise<string> {
  const { stdout } = await execute("ctr", ["-a", socketOf(cluster), "-n", "k8s.io", ...args], { maxBuffer: 1 << 24 });
  return stdout;
}

/** Starts everything; settles when the node is ready and pods can be made. */
export async function bringUp(cluster: Cluster, say: (line: string) => void): Promise<void> {
  const { dir, bin, address } = cluster;
  const at = (...names: string[]) => path.join(dir, ...names);
  for (const name of [...NODE_FOLDERS, "pki", "volumes"]) await mkdir(at(name), { recursive: true });
  say("Starting a control plane and a node");
  await makeNetwork(cluster);
  await ip(cluster, "route", "add", "default", "dev", "lo");
  await writeFile(at("sysctl"), (await execute("sysctl", KERNEL_SETTINGS)).stdout);
  const watches = Number((await execute("sysctl", ["-n", WATCHES])).stdout);
  // A sandbox may not be allowed to change it.
  if (watches < LEAST_WATCHES) await execute("sysctl", ["-qw", `${WATCHES}=${LEAST_WATCHES}`]).catch(() => undefined);
  await makeCertificates(at("pki"), [address, "127.0.0.1", SERVICES.replace("0.0/16", "0.1")]);
  await writeFile(cluster.kubeconfig, kubeconfig(cluster));
  await startContainerd(cluster);
  await begin(cluster, "etcd", [
    path.join(bin, "etcd"),
    ...["--data-dir", at("etcd"), "--unsafe-no-fsync"],
    ...["--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls", "http://127.0.0.1:2379"],
    ...["--listen-peer-urls", "http://127.0.0.1:2380", "--initial-advertise-peer-urls", "http://127.0.0.1:2380"],
    ...["--initial-cluster", "default=http://127.0.0.1:2380"],
  ]);
  await begin(cluster, "kube-apiserver", [
    path.join(bin, "kube-apiserver"),
    "--etcd-servers=http://127.0.0.1:2379",
    ...[`--bind-address=${address}`, `--advertise-address=${address}`],
    ...[`--tls-cert-file=${at("pki", "server.crt")}`, `--tls-private-key-file=${at("pki", "server.key")}`],
    `--client-ca-file=${at("pki", "ca.crt")}`,
    ...[
      `--service-account-key-file=${at("pki", "accounts.key")}`,
      `--service-account-signing-key-file=${at("pki", "accounts.key")}`,
    ],
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-cluster-ip-range=${SERVICES}`,
    ...["--authorization-mode=Node,RBAC", "--allow-privileged=true"],
    ...[`--kubelet-client-certificate=${at("pki", "admin.crt")}`, `--kubelet-client-key=${at("pki", "admin.key")}`],
    "--kubelet-preferred-address-types=InternalIP",
  ]);
  await until(
    cluster,
    "the API server to answer",
    60,
    async () => (await kubectl(cluster, "get", "--raw", "/readyz")) !== "",
  );
  await begin(cluster, "kube-controller-manager", [
    path.join(bin, "kube-controller-manager"),
    ...["--kubeconfig", cluster.kubeconfig],
    `--service-account-private-key-file=${at("pki", "accounts.key")}`,
    `--root-ca-file=${at("pki", "ca.crt")}`,
    ...["--use-service-account-credentials=true", "--leader-elect=false"],
    // The client's default limits delay the default ServiceAccount of a namespace, without which no pod is admitted.
    ...["--kube-api-qps=300", "--kube-api-burst=600"],
    ...["--node-monitor-grace-period=16s", "--node-monitor-period=2s"],
  ]);
  const scheduler = [path.join(bin, "kube-scheduler"), "--kubeconfig", cluster.kubeconfig, "--leader-elect=false"];
  await begin(cluster, "kube-scheduler", scheduler);
  await startKubelet(cluster);
  await until(cluster, "pods to be taken", 90, async () => {
    return (await kubectl(cluster, "get", "serviceaccount", "default", "-o", "name")) !== "";
  });
}

/** Adds a further node (see `furtherNode`) to a cluster that runs; settles when the node is ready. It has no images. */
export async function addNode(cluster: Cluster, number: number, pool: string): Promise<Cluster> {
  const node = furtherNode(cluster, number, pool);
  const [here, there] = [`to-${node.node}`, `to-${cluster.node}`];
  await removeNode(node);
  for (const name of NODE_FOLDERS) await mkdir(path.join(node.dir, name), { recursive: true });
  await symlink(path.join(cluster.dir, "pki"), path.join(node.dir, "pki"));
  await makeNetwork(node);
  const wire = [
    ...["link", "add", here, "type", "veth"],
    ...["peer", "name", there, "netns", path.basename(node.netns)],
  ];
  await ip(cluster, ...wire);
  for (const [from, to, link] of [
    [cluster, node, here],
    [node, cluster, there],
  ] as const) {
    await ip(from, "link", "set", link, "up");
    await ip(from, "route", "add", to.address, "dev", link, "src", from.address);
    await ip(from, "route", "add", to.pods, "via", to.address, "dev", link, "onlink", "src", from.address);
  }
  await ip(node, "route", "add", "default", "via", cluster.address, "dev", there, "onlink", "src", node.address);
  for (const hierarchy of await hierarchies())
    await mkdir(path.join(hierarchy, node.controlGroup), { recursive: true });
  await startContainerd(node);
  await startKubelet(node);
  return node;
}

/** Ends a further node as a machine ends whose power fails: the cluster is told nothing. */
export async function failNode(node: Cluster): Promise<void> {
  for (const name of ["kube-proxy", "kubelet"]) await end(node, name, "SIGKILL");
  for (const task of await tasksOf(node)) await ctr(node, "task", "rm", "-f", task).catch(() => "");
}

/** Starts a node again that failed, as a machine comes back; settles when the cluster takes it for ready. */
export async function returnNode(node: Cluster): Promise<void> {
  for (const name of ["kubelet", "kube-proxy"]) await resume(node, name);
  await untilReady(node);
}

/** Removes a further node and everything that belongs to it. */
export async function removeNode(node: Cluster): Promise<void> {
  if (!existsSync(node.dir)) return;
  await failNode(node);
  await kubectl(node, "delete", "node", node.node, "--ignore-not-found").catch(() => "");
  await clearNode(node);
}

/** The further nodes that a cluster has. */
async function furtherNodes(cluster: Cluster): Promise<Cluster[]> {
  const numbers = (await readdir(cluster.dir)).flatMap((name) => /^node-(\d)$/.exec(name)?.[1] ?? []);
  return numbers.map((number) => furtherNode(cluster, Number(number), ""));
}

/** What runs containers on a node. */
async function startContainerd(node: Cluster): Promise<void> {
  const config = path.join(node.dir, "containerd", "config.toml");
  await writeFile(config, containerdConfig(node));
  await writeFile(path.join(node.dir, "cni", "10-pods.conflist"), podNetwork(node));
  await begin(node, "containerd", [
    ...["unshare", "--mount", "--propagation", "private", "bash", "-c", PRIVATE_PATHS, "bash", node.dir],
    ...["containerd", "-c", config],
  ]);
  // Its kubelet enters its mounts: before they are its own, that would be the machine's, and pods would find empty folders.
  await until(node, "containerd to answer", 60, async () => (await ctr(node, "version")) !== "");
}

/** Where a node's kubelet keeps the volumes of its pods, and looks for plugins. */
export function kubeletFolder(node: Cluster): string {
  return path.join(node.dir, "kubelet", "root");
}

/** Starts one component of a node beside containerd, whose mounts it makes and sees. */
export async function startBesideKubelet(node: Cluster, name: string, command: readonly string[]): Promise<void> {
  const containerd = await readProcess(node, "containerd");
  await begin(node, name, ["nsenter", "--mount", `--target=${containerd?.pid}`, `--wdns=${node.dir}`, ...command]);
}

/** What makes it a node of the cluster; settles when the cluster takes it for ready. */
async function startKubelet(node: Cluster): Promise<void> {
  const { dir, bin, address } = node;
  const at = (...names: string[]) => path.join(dir, ...names);
  const config = ["--kubeconfig", node.kubeconfig];
  await writeFile(at("kubelet", "config.json"), kubeletConfig(node));
  await startBesideKubelet(node, "kubelet", [
    path.join(bin, "kubelet"),
    ...config,
    ...["--config", at("kubelet", "config.json")],
    ...["--root-dir", kubeletFolder(node), "--cert-dir", at("kubelet", "pki")],
    ...[`--hostname-override=${node.node}`, `--node-ip=${address}`],
    ...(node.pool === undefined ? [] : [`--node-labels=${POOL}=${node.pool}`]),
  ]);
  await begin(node, "kube-proxy", [
    path.join(bin, "kube-proxy"),
    ...config,
    ...[`--hostname-override=${node.node}`, `--cluster-cidr=${node.pods}`, `--bind-address=${address}`],
    // Settings of the whole machine, which a test leaves alone.
    ...[
      "--conntrack-max-per-core=0",
      "--conntrack-tcp-timeout-established=0s",
      "--conntrack-tcp-timeout-close-wait=0s",
    ],
    "--oom-score-adj=0",
  ]);
  await untilReady(node);
}

async function untilReady(node: Cluster): Promise<void> {
  await until(node, "the node to be ready", 90, async () => {
    const condition = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";
    return (await kubectl(node, "get", "node", node.node, "-o", condition)) === "True";
  });
}

/** Ends one component of a cluster that goes on; `resume` starts it as it was. */
export async function halt(cluster: Cluster, name: string): Promise<void> {
  await end(cluster, name, "SIGKILL");
}

export async function resume(cluster: Cluster, name: string): Promise<void> {
  const command = await readFile(path.join(cluster.dir, "command", name), "utf8");
  await begin(cluster, name, z.array(z.string()).parse(JSON.parse(command)));
}

/** Ends every process of it, and leaves nothing behind: no pod, mount, namespace or control group. */
export async function bringDown(cluster: Cluster): Promise<void> {
  const { dir } = cluster;
  if (!existsSync(dir)) return;
  // First, or they would make their pods anew.
  await end(cluster, "kube-controller-manager", "SIGKILL");
  await end(cluster, "kube-scheduler", "SIGKILL");
  if (await isUp(cluster)) {
    await kubectl(cluster, "delete", "pods", "-A", "--all", "--force", "--grace-period=0", "--wait=false").catch(
      () => "",
    );
    for (let waited = 0; waited < 100 && (await tasksOf(cluster)).length > 0; waited++) await sleep(100);
  }
  for (const node of await furtherNodes(cluster)) await removeNode(node);
  await end(cluster, "buckets");
  await end(cluster, "kube-proxy");
  await end(cluster, "kubelet");
  for (const task of await tasksOf(cluster)) await ctr(cluster, "task", "rm", "-f", task).catch(() => "");
  for (const name of ["kube-apiserver", "etcd"]) await end(cluster, name, "SIGKILL");
  const settings = path.join(dir, "sysctl");
  if (existsSync(settings)) await execute("sysctl", ["-qp", settings]);
  await clearNode(cluster);
}

/** Removes what is left of a node whose processes have ended, containerd but for. */
async function clearNode(node: Cluster): Promise<void> {
  await end(node, "containerd");
  const mounts = (await readFile("/proc/mounts", "utf8")).split("\n").map((line) => line.split(" ")[1] ?? "");
  for (const mount of mounts
    .filter((one) => one.startsWith(`${node.dir}/`))
    .sort()
    .reverse()) {
    await execute("umount", [mount]).catch(() => undefined);
  }
  await execute("ip", ["netns", "del", path.basename(node.netns)]).catch(() => undefined);
  await removeControlGroups(node);
  await rm(node.dir, { recursive: true, force: true });
}

async function tasksOf(node: Cluster): Promise<string[]> {
  return (await ctr(node, "task", "ls", "-q").catch(() => "")).split("\n").filter((line) => line !== "");
}

/** A network namespace with the node's address. */
async function makeNetwork(node: Cluster): Promise<void> {
  await execute("ip", ["netns", "add", path.basename(node.netns)]);
  await ip(node, "link", "set", "lo", "up");
  await ip(node, "addr", "add", `${node.address}/32`, "dev", "lo");
  await inside(node, "sysctl", "-qw", "net.ipv4.ip_forward=1");
}

async function ip(node: Cluster, ...args: string[]): Promise<void> {
  await execute("ip", ["-n", path.basename(node.netns), ...args]);
}

/**
 * The fixed paths of kubelet, containerd and the network plugins become folders of this cluster.
 * First argument: its folder; the rest: what to run.
 */
const PRIVATE_PATHS = `dir=$1; shift
for fixed in var/lib/kubelet var/lib/cni run/containerd var/log/containers; do
  mkdir -p "/$fixed" "$dir/fixed/$fixed"
  mount --bind "$dir/fixed/$fixed" "/$fixed"
done
exec "$@"`;

/** `nsenter`, not `ip netns exec`: that one mounts /sys anew and hides the control groups. */
async function inside(cluster: Cluster, command: string, ...args: string[]) {
  return await execute("nsenter", [`--net=${cluster.netns}`, command, ...args], { maxBuffer: 1 << 26 });
}

async function begin(cluster: Cluster, name: string, command: string[]): Promise<void> {
  const log = await open(path.join(cluster.dir, "log", name), "a");
  const child = spawn("nsenter", [`--net=${cluster.netns}`, ...command], {
    cwd: cluster.dir,
    detached: true,
    stdio: ["ignore", log.fd, log.fd],
  });
  await new Promise<void>((resolve, reject) => child.once("spawn", resolve).once("error", reject));
  child.unref();
  await log.close();
  const stat = await processStat(child.pid ?? 0);
  if (stat === undefined) throw new Error(`${name} ended at once; its last words are in ${cluster.dir}/log/${name}.`);
  await writeFile(path.join(cluster.dir, "command", name), JSON.stringify(command));
  await writeFile(path.join(cluster.dir, "pid", name), JSON.stringify({ pid: child.pid, startTime: stat.startTime }));
}

const processStart = z.object({ pid: z.int().positive(), startTime: z.int() });

async function readProcess(cluster: Cluster, name: string): Promise<ProcessStart | undefined> {
  const text = await readFile(path.join(cluster.dir, "pid", name), "utf8").catch(() => undefined);
  return text === undefined ? undefined : processStart.parse(JSON.parse(text));
}

async function end(cluster: Cluster, name: string, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
  const known = await readProcess(cluster, name);
  if (known === undefined) return;
  for (const [sent, limit] of [
    [signal, 10_000],
    ["SIGKILL", 5_000],
  ] as const) {
    if (!(await isAlive(known))) return;
    process.kill(known.pid, sent);
    for (let waited = 0; waited < limit && (await isAlive(known)); waited += 50) await sleep(50);
  }
}

async function until(cluster: Cluster, what: string, seconds: number, holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  while (!(await holds().catch(() => false))) {
    if (Date.now() > deadline)
      throw new Error(
        `Waited ${seconds} s for ${what}; the logs are in ${cluster.dir}/log.\n${await lastLines(cluster)}`,
      );
    await sleep(100);
  }
}

/** The end of each log, for a failure that nobody can look at afterwards. */
async function lastLines(cluster: Cluster): Promise<string> {
  const folder = path.join(cluster.dir, "log");
  const ends = (await readdir(folder)).map(async (name) => {
    const lines = (await readFile(path.join(folder, name), "utf8")).trimEnd().split("\n");
    return `${name}: ${lines.slice(-3).join("\n  ")}`;
  });
  return (await Promise.all(ends)).join("\n");
}

/** Where control groups are: one tree, or one for each controller. */
async function hierarchies(): Promise<string[]> {
  const root = "/sys/fs/cgroup";
  if (existsSync(path.join(root, "cgroup.controllers"))) return [root];
  return (await readdir(root)).map((name) => path.join(root, name));
}

async function removeControlGroups({ controlGroup }: Cluster): Promise<void> {
  const removeTree = async (folder: string): Promise<void> => {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) await removeTree(path.join(folder, entry.name));
    }
    await rmdir(folder).catch(() => undefined);
  };
  for (const hierarchy of await hierarchies()) {
    // Of the first node, only what kubelet and containerd have made in the machine's own.
    for (const name of controlGroup === "/" ? ["kubepods", "k8s.io"] : [controlGroup]) {
      const folder = path.join(hierarchy, name);
      if (existsSync(folder)) await removeTree(folder);
    }
  }
}
