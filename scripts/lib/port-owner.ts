/** Which process listens on a TCP port of this machine. */
import { readdir, readFile, readlink } from "node:fs/promises";

export type PortOwner = {
  /** The user that the socket belongs to. */
  uid: number;
  /** Undefined where this process may not read the owner's descriptors. */
  process?: { pid: number; command: string };
};

/** The listener on `port`, on any address; undefined when none is known. */
export async function ownerOfPort(port: number): Promise<PortOwner | undefined> {
  const tables = await Promise.all(
    ["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "utf8").catch(() => "")),
  );
  const socket = tables.flatMap(listeners).find((listener) => listener.port === port);
  if (socket === undefined) return undefined;
  const pid = await processWith(`socket:[${socket.inode}]`);
  if (pid === undefined) return { uid: socket.uid };
  const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  // Another program chose these characters, and a terminal may show them.
  return { uid: socket.uid, process: { pid, command: command.replaceAll(/[^\x20-\x7e]+/g, " ").trim() } };
}

/** An owner as an error names it. */
export function describeOwner(owner: PortOwner | undefined): string {
  if (owner === undefined) return "an unknown process";
  if (owner.process === undefined) return `a process of the user with the id ${owner.uid}`;
  return `process ${owner.process.pid} (${owner.process.command.slice(0, 200)})`;
}

/** The state of a listening socket in /proc/net/tcp (include/net/tcp_states.h). */
const LISTEN = "0A";

function listeners(table: string): { port: number; uid: number; inode: string }[] {
  const found = [];
  for (const line of table.split("\n").slice(1)) {
    const [, local = "", , state, , , , uid, , inode] = line.trim().split(/\s+/);
    if (state !== LISTEN || inode === undefined) continue;
    found.push({ port: Number.parseInt(local.split(":")[1] ?? "", 16), uid: Number(uid), inode });
  }
  return found;
}

async function processWith(socket: string): Promise<number | undefined> {
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const descriptor of descriptors) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => undefined);
      if (target === socket) return Number(pid);
    }
  }
  return undefined;
}
