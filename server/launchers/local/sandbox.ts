/**
 * The sandbox of the local launcher: the command line that starts a program in namespaces of its own, and the probe
 * that says whether this machine allows it. What is mounted is decided here; sandbox.sh carries it out.
 */
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { release, tmpdir } from "node:os";
import path from "node:path";
import type { Isolation } from "#server/launchers/launcher.ts";
import { DEFAULT_SHM_BYTES } from "./limits.ts";
import { EGRESS_PORT } from "./network.ts";

const SCRIPT = path.join(import.meta.dirname, "sandbox.sh");
/** Names the forwarder as the only DNS server: those of the host are out of reach. */
const RESOLV_CONF = path.join(import.meta.dirname, "resolv.conf");
const DROP_INHERITED = path.join(import.meta.dirname, "drop-inherited.py");
const FORBID_CALLS = path.join(import.meta.dirname, "forbid-calls.py");

/** How this machine lets us isolate. As root we also change to a user id of the workspace's own. */
export type SandboxMode = { asRoot: boolean; userNamespace: boolean };

export type Mount = {
  from: string;
  to: string;
  writable?: boolean;
  /**
   * `from` is a folder whose path holds no link. Where somebody has put a link into the path since then, the sandbox
   * starts without the mount.
   */
  isWithoutLinks?: boolean;
};

/** The files of /etc that programs need to resolve names, trust certificates, find libraries and tell the time. */
const ETC = [
  "alternatives",
  "ca-certificates",
  "ca-certificates.conf",
  "crypto-policies",
  "fonts",
  "gai.conf",
  "host.conf",
  "hosts",
  "inputrc",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "locale.alias",
  "localtime",
  "mime.types",
  "nsswitch.conf",
  "os-release",
  "pip.conf",
  "pki",
  "profile",
  "protocols",
  "services",
  "ssl",
  "terminfo",
  "timezone",
];

/** The system as a workspace sees it: programs and libraries, read-only, and nothing about the host's people. */
export function systemOperations(): string[] {
  const operations: string[] = [];
  for (const name of ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"]) {
    const kind = lstatSync(name, { throwIfNoEntry: false });
    if (kind?.isSymbolicLink()) operations.push("link", readlinkSync(name), name);
    else if (kind?.isDirectory()) operations.push("ro", name, name);
  }
  for (const name of ETC) if (existsSync(`/etc/${name}`)) operations.push("ro", `/etc/${name}`, `/etc/${name}`);
  operations.push("ro", RESOLV_CONF, "/etc/resolv.conf");
  operations.push("dir", "/var/empty");
  return operations;
}

/** Limits that the sandbox itself enforces. */
export type SandboxLimits = {
  /** Processes and threads; ignored where the kernel cannot count one sandbox alone. */
  tasks: number;
  shmBytes: number;
  /** Size of `/tmp` in memory. `/var/tmp` is then a mount of its own. */
  tmpBytes: number;
};

export type SandboxCommand = {
  mode: SandboxMode;
  /** An empty folder of the host. */
  root: string;
  /** Host user id; used only as root. */
  uid: number;
  mounts: Mount[];
  command: string[];
  limits?: SandboxLimits;
  /** A Python interpreter that no tenant can write: it runs on the host, with the rights of the installation. */
  python?: string;
};

/** Program and arguments that run `command` in the sandbox. */
export function sandboxCommand(input: SandboxCommand): string[] {
  const { mode, root, uid, mounts, command, limits, python = "python3" } = input;
  // Without root, the right to mount comes from a user namespace in which we are root.
  const user = mode.asRoot ? [] : ["--user", "--map-root-user"];
  const operations = mounts.flatMap(({ from, to, writable, isWithoutLinks }) => [
    `${writable ? "rw" : "ro"}${isWithoutLinks ? "-folder" : ""}`,
    ...[from, to],
  ]);
  return [
    ...[python, "-I", "-S", DROP_INHERITED],
    "unshare",
    ...user,
    ...["--mount", "--pid", "--ipc", "--net", "--fork", "--kill-child", "--"],
    // The kernel lets only a process with CAP_SYS_ADMIN install a filter without no-new-privs.
    ...[python, "-I", "-S", FORBID_CALLS],
    ...["sh", SCRIPT, root, mode.asRoot ? String(uid) : "same", mode.userNamespace ? "yes" : "no", python],
    limits !== undefined && countsTasks(mode) ? String(limits.tasks) : "any",
    String(limits?.shmBytes ?? DEFAULT_SHM_BYTES),
    String(EGRESS_PORT),
    ...systemOperations(),
    ...(limits === undefined ? ["link", "/tmp", "/var/tmp"] : ["tmpfs", String(limits.tmpBytes), "/tmp"]),
    ...operations,
    "--",
    ...command,
  ];
}

/**
 * Whether RLIMIT_NPROC holds for one sandbox alone. As root each sandbox has its own user id. Without root all share
 * the broker's, and the kernel counts by user namespace since 5.14.
 */
export function countsTasks({ asRoot, userNamespace }: SandboxMode, kernel: string = release()): boolean {
  const [major = 0, minor = 0] = kernel.split(".").map(Number);
  return asRoot || (userNamespace && (major > 5 || (major === 5 && minor >= 14)));
}

/**
 * The host's user id of a workspace when the broker runs as root: above what systems hand out, one for each
 * workspace as far as a hash can tell them apart. Where fewer ids exist (in a container), one of those.
 */
export function workspaceUid(id: string, uidMap: string = readFileSync("/proc/self/uid_map", "utf8")): number {
  let hash = 0;
  for (const character of id) hash = (hash * 31 + character.charCodeAt(0)) % 16_777_213;
  const known = (uid: number) =>
    uidMap.split("\n").some((line) => {
      const [start, , count] = line.trim().split(/\s+/).map(Number);
      return start !== undefined && count !== undefined && uid >= start && uid < start + count;
    });
  const wide = 0x7000_0000 + hash;
  return known(wide) ? wide : 20_000 + (hash % 40_000);
}

/** Limit of the attempt to start a sandbox. A busy or emulated processor takes seconds for the attempt. */
const PROBE_MS = 60_000;
let probed: { mode: SandboxMode | undefined; reason: string } | undefined;

/** What this machine allows; tried once by really building a sandbox. */
export function probeSandbox(): { mode: SandboxMode | undefined; reason: string } {
  probed ??= probe();
  return probed;
}

export function isolation(): Isolation {
  const { mode, reason } = probeSandbox();
  return mode === undefined ? { isolated: false, reason } : { isolated: true };
}

function probe(): { mode: SandboxMode | undefined; reason: string } {
  const asRoot = process.getuid?.() === 0;
  const modes: SandboxMode[] = asRoot
    ? [
        { asRoot, userNamespace: true },
        { asRoot, userNamespace: false },
      ]
    : [{ asRoot, userNamespace: true }];
  let reason = "";
  for (const mode of modes) {
    const root = mkdtempSync(path.join(tmpdir(), "sluice-probe-"));
    try {
      const [program = "unshare", ...args] = sandboxCommand({
        mode,
        root,
        uid: workspaceUid("probe"),
        mounts: [],
        command: ["true"],
      });
      const result = spawnSync(program, args, { encoding: "utf8", timeout: PROBE_MS });
      if (result.status === 0) return { mode, reason: "" };
      reason = result.error?.message ?? (result.stderr.trim().split("\n")[0] || `ended with ${result.status}`);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  }
  return { mode: undefined, reason: `this machine does not let us make namespaces (${reason})` };
}
