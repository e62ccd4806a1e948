import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { insideLayout } from "#server/launchers/layout.ts";
import { EGRESS_PORT } from "./network.ts";
import { countsTasks, type Mount, probeSandbox, type SandboxLimits, sandboxCommand, workspaceUid } from "./sandbox.ts";

const folder = mkdtempSync(path.join(tmpdir(), "sluice-sandbox-"));
chmodSync(folder, 0o777);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;
const LOOK =
  "id -u; grep -E '^(CapPrm|CapEff|CapAmb|NoNewPrivs)' /proc/self/status; ls /; test -w /usr && echo writable; test -e /dev/nvidiactl && echo nvidiactl; true";

const PROGRAMS = [
  "sandbox.sh",
  "drop-inherited.py",
  "forbid-calls.py",
  "bind-folder.py",
  "own-network.py",
  "resolv.conf",
];

const CONNECT = `import socket
socket.socket(socket.AF_UNIX).connect("${insideLayout.gpuds}/gpud.sock")
print("connected")`;

/** Connects to an address outside, takes the connection as the forwarder does, and tries to end the redirection. */
const REDIRECTED = `import socket, struct, subprocess, threading
taker = socket.create_server(("127.0.0.1", ${EGRESS_PORT + 1}))
taker.settimeout(10)
threading.Thread(target=lambda: socket.create_connection(("192.0.2.77", 443), 10), daemon=True).start()
port, address = struct.unpack("!2xH4s8x", taker.accept()[0].getsockopt(socket.SOL_IP, 80, 16))
print(socket.inet_ntoa(address), port)
for command in ("ip link set lo down", "ip route del local default dev lo table local"):
    for way in ("", "unshare --user --map-root-user "):
        if subprocess.run(way + command, shell=True, stderr=subprocess.DEVNULL).returncode == 0:
            print("changed", way, command)`;

/** Exchanges two names for as long as it runs: RENAME_EXCHANGE (2) of renameat2. */
const EXCHANGE = `import ctypes, os, sys
libc = ctypes.CDLL(None)
print("ready", flush=True)
while True:
    libc.renameat2(-100, os.fsencode(sys.argv[1]), -100, os.fsencode(sys.argv[2]), 2)`;

/** Opens a file at descriptors that Node does not close, and becomes a command. */
const LEAK = `import os, sys
for number in (3, 16, 17, 30, 900):
    os.dup2(os.open("/etc/passwd", os.O_RDONLY), number)
os.execvp(sys.argv[1], sys.argv[1:])`;

/** Puts a key into the session keyring of the program that starts the sandbox, keeps the keyring, and becomes a command. */
const KEEP_KEY = `import ctypes, os, platform, sys
join, add = {"x86_64": (250, 248), "aarch64": (219, 217)}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.syscall(join, 1, None) > 0, "a keyring of its own"
assert libc.syscall(add, b"user", b"sluice-starter", b"secret", 6, -3) > 0, "a key"
read, write = os.pipe()
if os.fork() == 0:
    os.close(write)
    os.read(read, 1)
    os._exit(0)
os.set_inheritable(write, True)
os.execvp(sys.argv[1], sys.argv[1:])`;

/** Tries calls that know no namespace; prints the error of each. */
const FORBIDDEN = `import ctypes, errno, platform
libc = ctypes.CDLL(None, use_errno=True)
socket, add, request, keyctl = {"x86_64": (41, 248, 249, 250), "aarch64": (198, 217, 218, 219)}[platform.machine()]
def told(name, *call):
    outcome = libc.syscall(*call)
    print(name, "ok" if outcome >= 0 else errno.errorcode[ctypes.get_errno()])
told("search", keyctl, 10, -3, b"user", b"sluice-starter", 0)
told("add", add, b"user", b"own", b"x", 1, -3)
told("request", request, b"user", b"sluice-starter", None, 0)
told("io_uring", 425, 8, ctypes.create_string_buffer(120))
for name, family in (("vsock", 40), ("alg", 38), ("qrtr", 42), ("packet", 17), ("unix", 1), ("inet", 2), ("inet6", 10)):
    told(name, socket, family, 2 if family == 42 else 1, 0)
pair = {"x86_64": 53, "aarch64": 199}[platform.machine()]
for name, family in (("tipc pair", 30), ("unix pair", 1)):
    told(name, pair, family, 1, 0, (ctypes.c_int * 2)())
told("secret memory", 447, 0)
told("vsock in a wide register", socket, ctypes.c_long(1 << 32 | 40), 1, 0)
told("x32", ctypes.c_long(0x40000000 | 39))`;

type Look = { what?: string; mounts?: Mount[]; limits?: SandboxLimits; before?: string };

/** Runs the look around in a sandbox, as nobody when we are root and shall not be. */
function look(
  mode: { asRoot: boolean; userNamespace: boolean },
  { what = LOOK, mounts = [], limits, before }: Look = {},
): string {
  const root = mkdtempSync(path.join(folder, "root-"));
  chmodSync(root, 0o777);
  // Nobody cannot read a checkout below /root.
  const copied = (name: string) => path.join(folder, path.basename(name));
  for (const name of PROGRAMS) {
    copyFileSync(path.join(import.meta.dirname, name), copied(name));
    chmodSync(copied(name), 0o755);
  }
  const command = sandboxCommand({
    mode,
    root,
    uid: workspaceUid("look"),
    mounts,
    limits,
    command: ["sh", "-c", what],
  });
  const [program = "", ...args] = command.map((word) =>
    PROGRAMS.some((name) => word === path.join(import.meta.dirname, name)) ? copied(word) : word,
  );
  const asNobody = isRoot && !mode.asRoot ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : [];
  const starter = before === undefined ? [] : ["python3", "-c", before];
  const [first = program, ...rest] = [...asNobody, ...starter, program, ...args];
  // Root's own path may lead nobody to programs below /root.
  const env = asNobody.length > 0 ? { ...process.env, PATH: "/usr/sbin:/usr/bin:/sbin:/bin" } : process.env;
  return execFileSync(first, rest, { encoding: "utf8", timeout: 20_000, cwd: "/", env });
}

describe.runIf(probeSandbox().mode !== undefined)("the sandbox", () => {
  const modes = [...(isRoot ? [{ asRoot: true, userNamespace: true }] : []), { asRoot: false, userNamespace: true }];
  it.each(modes)("leaves no privilege and shows only the system (%o)", (mode) => {
    const [uid, ...lines] = look(mode).trim().split("\n");
    expect(uid).toBe("1000");
    expect(lines).toContain("CapPrm:\t0000000000000000");
    expect(lines).toContain("CapEff:\t0000000000000000");
    expect(lines).toContain("CapAmb:\t0000000000000000");
    expect(lines).toContain("NoNewPrivs:\t1");
    expect(lines).toContain("usr");
    expect(lines).not.toContain("root");
    expect(lines).not.toContain("writable");
    expect(lines, "JAX looks for a device file").toContain("nvidiactl");
  });

  it.each(modes)("passes on no descriptor that the starter of Sluice left open, and no ignored signal (%o)", (mode) => {
    const what = "ls /proc/$$/fd; grep SigIgn /proc/$$/status";
    const [descriptors, ignored] = look(mode, { what, before: LEAK }).trim().split("SigIgn:");
    expect(descriptors?.trim().split("\n")).toEqual(["0", "1", "2"]);
    expect(Number(ignored)).toBe(0);
  });

  it.each(modes)("refuses calls that lead out of its namespaces, and passes on no key (%o)", (mode) => {
    const what = `python3 -I -S -c '${FORBIDDEN}'`;
    const told = look(mode, { what, before: KEEP_KEY }).trim().split("\n");
    expect(Object.fromEntries(told.map((line) => line.split(/ (?=\w+$)/)))).toEqual({
      ...{ search: "ENOSYS", add: "ENOSYS", request: "ENOSYS", io_uring: "ENOSYS", x32: "ENOSYS" },
      ...{ "secret memory": "ENOSYS", "tipc pair": "EAFNOSUPPORT", "unix pair": "ok" },
      ...{ vsock: "EAFNOSUPPORT", alg: "EAFNOSUPPORT", qrtr: "EAFNOSUPPORT", packet: "EAFNOSUPPORT" },
      ...{ "vsock in a wide register": "EAFNOSUPPORT", unix: "ok", inet: "ok", inet6: "ok" },
    });
  });

  it.each(modes)("lists no key of the starter (%o)", (mode) => {
    expect(look(mode, { what: "cat /proc/keys /proc/key-users", before: KEEP_KEY }).trim()).toBe("");
  });

  it.each(modes)("keeps the settings of its namespaces from its programs (%o)", (mode) => {
    const what = `for name in kernel/shmall kernel/msgmni net/ipv4/tcp_rmem fs/mqueue/queues_max user/max_user_namespaces; do
      (echo 9999 >/proc/sys/$name) 2>/dev/null && echo changed $name; done; true`;
    expect(look(mode, { what, limits: { tasks: 64, shmBytes: 1 << 22, tmpBytes: 1 << 22 } }).trim()).toBe("");
  });

  it.each(modes)(
    "mounts no link that was put in the place of a folder (%o)",
    async (mode) => {
      // The outer folder is writable for another workspace. What the link leads to is a folder of another team.
      const base = realpathSync(mkdtempSync(path.join(folder, "exchange-")));
      const [inner, secret] = [path.join(base, "outer", "inner"), path.join(base, "secret")];
      for (const [at, text] of [
        [inner, "own"],
        [secret, "secret"],
      ] as const) {
        mkdirSync(at, { recursive: true });
        writeFileSync(path.join(at, "text"), text);
      }
      symlinkSync(secret, path.join(base, "outer", "link"));
      execFileSync("chmod", ["-R", "a+rX", base]);
      const swapper = spawn("python3", ["-c", EXCHANGE, inner, path.join(base, "outer", "link")]);
      await once(swapper.stdout, "data");
      const seen = new Set<string>();
      try {
        const mount = { from: inner, to: "/data/set", isWithoutLinks: true };
        for (let start = 0; start < 12 || (!seen.has("own") && start < 60); start++)
          seen.add(look(mode, { what: "cat /data/set/text 2>/dev/null || echo left out", mounts: [mount] }).trim());
      } finally {
        swapper.kill("SIGKILL");
      }
      expect(seen).not.toContain("secret");
      expect(seen, "the folder itself is mounted").toContain("own");
    },
    60_000,
  );

  it.each(modes)("mounts a folder without links with the rights that were asked for (%o)", (mode) => {
    const data = realpathSync(mkdtempSync(path.join(folder, "data-")));
    chmodSync(data, 0o777);
    const mounts = [
      { from: data, to: "/data/read", isWithoutLinks: true },
      { from: data, to: "/data/write", isWithoutLinks: true, writable: true },
      { from: path.join(data, "gone"), to: "/data/gone", isWithoutLinks: true },
    ];
    const what = "for name in read write; do touch /data/$name/file 2>/dev/null && echo $name; done; ls /data";
    expect(look(mode, { what, mounts }).trim().split("\n")).toEqual(["write", "read", "write"]);
  });

  it.each(modes)("refuses namespaces, in which a program would be root (%o)", (mode) => {
    const tries = ["--user", "--user --map-root-user --mount", "--mount", "--ipc", "--net"];
    const what = `for flags in ${tries.map((each) => `'${each}'`).join(" ")}; do unshare $flags true 2>/dev/null && echo $flags; done
      echo 9 2>/dev/null >/proc/sys/user/max_user_namespaces && echo writable; cat /proc/sys/user/max_user_namespaces`;
    expect(look(mode, { what }).trim().split("\n")).toEqual(["0"]);
  });

  it.each(modes)("redirects connections to other addresses, whatever a program does (%o)", (mode) => {
    const seen = look(mode, { what: `python3 -c '${REDIRECTED}'; grep -v '^#' /etc/resolv.conf` });
    expect(seen.trim().split("\n").slice(0, 2)).toEqual(["192.0.2.77 443", "nameserver 127.0.0.1"]);
  });

  it.each(modes)("lets through to a gpud's socket, and nobody lays another there (%o)", async (mode) => {
    const sockets = mkdtempSync(path.join(folder, "gpud-"));
    chmodSync(sockets, 0o755);
    const server = createServer().listen(path.join(sockets, "gpud.sock"));
    await once(server, "listening");
    chmodSync(path.join(sockets, "gpud.sock"), 0o666);
    const what = `python3 -c '${CONNECT}'; touch ${insideLayout.gpuds}/other.sock 2>/dev/null && echo writable; true`;
    const seen = look(mode, { what, mounts: [{ from: sockets, to: insideLayout.gpuds }] });
    server.close();
    expect(seen.trim().split("\n")).toEqual(["connected"]);
  });
});

const MIB = 1024 ** 2;
const TASKS = 60;

/** Starts up to 5,000 processes, and prints how many the kernel allowed. */
const FORK_BOMB = `import os, signal
children = []
try:
    for _ in range(5000):
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except BlockingIOError:
    pass
print(len(children))
for pid in children:
    os.kill(pid, signal.SIGKILL)`;

/** Writes to each folder until it is full; then tries memory that System V keeps without a file. */
const FILL = `import ctypes, errno, os
for folder in ["/dev/shm", "/tmp"]:
    written = 0
    try:
        with open(f"{folder}/full", "wb", buffering=0) as file:
            while written < 64 << 20:
                written += file.write(bytes(1 << 20))
    except OSError as error:
        print(folder, written >> 20, errno.errorcode[error.errno])
    try:
        for number in range(100_000):
            os.mknod(f"{folder}/{number}")
    except OSError as error:
        print(folder, "files", errno.errorcode[error.errno])
libc = ctypes.CDLL(None, use_errno=True)
segment = libc.shmget(0, ctypes.c_size_t(64 << 20), 0o1600)
print("System V", errno.errorcode[ctypes.get_errno()] if segment < 0 else "allowed")
queues = sum(libc.msgget(0, 0o1600) >= 0 for _ in range(1000))
print("messages", errno.errorcode[ctypes.get_errno()] if queues <= 256 else "allowed")`;

describe.runIf(probeSandbox().mode !== undefined)("the limits of the sandbox", () => {
  const limits = { tasks: TASKS, shmBytes: 8 * MIB, tmpBytes: 4 * MIB };
  const modes = [...(isRoot ? [{ asRoot: true, userNamespace: true }] : []), { asRoot: false, userNamespace: true }];

  it.each(modes.filter((mode) => countsTasks(mode)))("stop a fork bomb of 5,000 processes (%o)", (mode) => {
    const started = Number(look(mode, { what: `exec python3 -c '${FORK_BOMB}'`, limits }));
    expect(started).toBeGreaterThan(TASKS - 10);
    expect(started).toBeLessThanOrEqual(TASKS);
  });

  it.each(modes)("give ENOSPC where files in memory reach their size (%o)", (mode) => {
    const lines = look(mode, { what: `exec python3 -c '${FILL}'`, limits })
      .trim()
      .split("\n");
    expect(lines).toEqual([
      "/dev/shm 8 ENOSPC",
      "/dev/shm files ENOSPC",
      "/tmp 4 ENOSPC",
      "/tmp files ENOSPC",
      // Without root only since Linux 6.9.
      expect.stringMatching(mode.asRoot ? /^System V ENOSPC$/ : /^System V (ENOSPC|allowed)$/),
      expect.stringMatching(mode.asRoot ? /^messages ENOSPC$/ : /^messages (ENOSPC|allowed)$/),
    ]);
  });

  it("leave out the limit of tasks without root before Linux 5.14, which counts all sandboxes together", () => {
    const mode = { asRoot: false, userNamespace: true };
    expect(countsTasks(mode, "5.13.0-52-generic")).toBe(false);
    expect(countsTasks(mode, "5.14.0-1-amd64")).toBe(true);
    expect(countsTasks({ ...mode, asRoot: true }, "4.18.0")).toBe(true);
  });
});

describe("a workspace's user id", () => {
  const wide = "         0          0 4294967295\n";

  it("is the same at every start, above what systems hand out, and another for another workspace", () => {
    expect(workspaceUid("ws-a", wide)).toBe(workspaceUid("ws-a", wide));
    expect(workspaceUid("ws-a", wide)).toBeGreaterThanOrEqual(0x7000_0000);
    expect(workspaceUid("ws-a", wide)).toBeLessThan(2 ** 31);
    expect(workspaceUid("ws-a", wide)).not.toBe(workspaceUid("ws-b", wide));
  });

  it("is one that exists, in a container with few", () => {
    const few = workspaceUid("ws-a", "         0     100000      65536\n");
    expect(few).toBeGreaterThanOrEqual(20_000);
    expect(few).toBeLessThan(60_000);
  });
});
