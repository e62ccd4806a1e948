/** Whether this machine can run a kubelet, and what it needs from the distribution for that. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { run } from "#scripts/lib/processes.ts";

const PACKAGES = [
  "buildah",
  "containerd",
  "runc",
  "containernetworking-plugins",
  "conntrack",
  "debootstrap",
  "docker-registry",
  "iptables",
  "iproute2",
  "openssl",
  "postgresql",
  "util-linux",
];

/** Why no cluster can run here; undefined when one can. */
export function whyNot(): string | undefined {
  if (process.platform !== "linux") return "it needs Linux";
  if (process.getuid?.() !== 0) return "a kubelet runs as root, and this is another user";
  const controllers = existsSync("/sys/fs/cgroup/cgroup.controllers")
    ? readFileSync("/sys/fs/cgroup/cgroup.controllers", "utf8")
    : readFileSync("/proc/cgroups", "utf8");
  const missing = ["cpu", "memory", "pids"].filter((name) => !new RegExp(`\\b${name}\\b`).test(controllers));
  if (missing.length > 0) return `the control groups ${missing.join(", ")} are missing`;
  if (spawnSync("unshare", ["--net", "--mount", "true"]).status !== 0) return "network namespaces cannot be made here";
  if (!existsSync("/usr/bin/apt-get")) return "its parts are installed by apt-get, which is missing";
  const go = spawnSync("go", ["env", "GOVERSION"], { encoding: "utf8" });
  const [major = 0, minor = 0] = (/go(\d+)\.(\d+)/.exec(go.stdout ?? "") ?? []).slice(1).map(Number);
  if (major < 1 || (major === 1 && minor < 21)) return "Kubernetes is built with Go 1.21 or newer, which is missing";
  return undefined;
}

const GIB = 2 ** 30;
/**
 * Images, volumes and logs take about 6 GiB, and the images of three further nodes 4 GiB. A kubelet whose disk is nearly
 * full deletes the images that it needs.
 */
const FREE_BYTES = 13 * GIB;

/** Fails where the disk of this folder has too little room for a cluster. */
export async function checkDisk(folder: string): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  if (free >= FREE_BYTES) return;
  const [has, needs] = [free, FREE_BYTES].map((bytes) => (bytes / GIB).toFixed(1));
  throw new Error(`${folder} has ${has} GiB free, and a cluster for the tests needs ${needs}. Make room there.`);
}

/** Installs what is missing from the distribution. */
export async function installPackages(say: (line: string) => void): Promise<void> {
  // One line a package that dpkg knows: its name, a tab, and its version when it is installed.
  const { stdout } = spawnSync("dpkg-query", ["--show", ...PACKAGES], { encoding: "utf8" });
  const installed = new Set(stdout.split("\n").flatMap((line) => (/^\S+\t\S/.test(line) ? [line.split("\t")[0]] : [])));
  const missing = PACKAGES.filter((name) => !installed.has(name));
  if (missing.length === 0) return;
  say(`Installing ${missing.join(", ")}`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  await whenFree(() => run("apt-get", ["update", "-qq"], { env }));
  await whenFree(() => run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...missing], { env }));
}

/** How often, and after what pause, apt-get is asked again while another process uses it. */
const APT = { tries: 60, pauseMs: 5_000 };

/** Runs apt-get again while another process holds its locks: another suite may install something at the same time. */
export async function whenFree(install: () => Promise<void>): Promise<void> {
  for (let left = APT.tries; ; left--) {
    try {
      return await install();
    } catch (error) {
      if (left === 0 || !/could not get lock|unable to (lock|acquire)/i.test(String(error))) throw error;
      await sleep(APT.pauseMs);
    }
  }
}
