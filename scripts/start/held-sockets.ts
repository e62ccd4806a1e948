/**
 * The listening sockets of an installation. `npm start` binds each port once and keeps the sockets open for its whole
 * life; its processes inherit them. While a process restarts, no other program can take the port, and connections wait
 * in the socket's queue.
 */
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import net, { type AddressInfo } from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { getSystemErrorName } from "node:util";
import { z } from "zod";
import { describeOwner, ownerOfPort, type PortOwner } from "#scripts/lib/port-owner.ts";

export type PortToHold = {
  port: number;
  /** The setting that chooses another port. */
  variable: string;
  /** Each gets a socket of its own; `::1` is left out where the machine has no IPv6. */
  hosts: readonly string[];
};

/** The first descriptor behind stdin, stdout and stderr. */
export const FIRST_DESCRIPTOR = 3;

/** The descriptors that a process inherits, from FIRST_DESCRIPTOR on, and the value of SLUICE_LISTEN_FDS. */
export type Inheritance = { descriptors: number[]; variable: string };

export type HeldSockets = {
  /** The held ports in the order in which they were asked for; a free one for each 0. */
  ports: number[];
  inheritanceOf: (...ports: number[]) => Inheritance;
  close: () => void;
};

/** Time that the processes of a killed `npm start` take to end. */
const PREDECESSORS_END_MS = 20_000;
/** Time for a listener whose process cannot be read, because it most likely ends now. */
const UNKNOWN_END_MS = 1_000;
const RETRY_MS = 250;

/**
 * Holds ports. A port that another program has is an error with the program's name; processes that a killed `npm start`
 * of the same state directory left are given time to end.
 */
export async function holdPorts(wanted: readonly PortToHold[], stateDir: string): Promise<HeldSockets> {
  const started = performance.now();
  /** Since when the process on a taken port is unknown. */
  let unknown: { port: number; since: number } | undefined;
  for (;;) {
    const sockets: BoundSocket[] = [];
    const taken = await hold(wanted, sockets);
    if (taken === undefined) return held(sockets);
    for (const { handle } of sockets) handle.close();
    const owner = await ownerOfPort(taken.port);
    const kind = await kindOf(owner, stateDir);
    if (kind !== "unknown") unknown = undefined;
    else if (unknown?.port !== taken.port) unknown = { port: taken.port, since: performance.now() };
    const deadlines = {
      predecessor: started + PREDECESSORS_END_MS,
      unknown: (unknown?.since ?? started) + UNKNOWN_END_MS,
      other: started,
    };
    if (performance.now() >= deadlines[kind]) {
      throw new Error(
        `Port ${taken.port} is taken by ${describeOwner(owner)}. ` +
          `End that process, or set ${taken.variable} to another port.`,
      );
    }
    await sleep(RETRY_MS);
  }
}

type BoundSocket = { handle: Handle; wanted: number; port: number };

function held(sockets: readonly BoundSocket[]): HeldSockets {
  const ports = new Map(sockets.map(({ wanted, port }) => [wanted, port]));
  return {
    ports: [...ports.values()],
    inheritanceOf: (...mine) => {
      const own = mine.flatMap((port) => sockets.filter((socket) => socket.port === port));
      const pairs = own.map(({ port }, index) => `${port}=${FIRST_DESCRIPTOR + index}`);
      return { descriptors: own.map(({ handle }) => handle.fd), variable: pairs.join(",") };
    },
    close: () => {
      for (const { handle } of sockets) handle.close();
    },
  };
}

/** Binds and listens; returns the first port that is taken. */
async function hold(wanted: readonly PortToHold[], sockets: BoundSocket[]): Promise<PortToHold | undefined> {
  for (const [index, each] of wanted.entries()) {
    let { port } = each;
    for (const host of each.hosts) {
      const bound = bind(host, port);
      if (bound === "no-address") continue;
      if (bound === "taken") return { ...each, port };
      port = bound.port;
      sockets.push({ ...bound, wanted: index });
    }
  }
  const refused = await beginListening(sockets.map(({ handle }) => handle.fd));
  if (refused === undefined) return undefined;
  const socket = sockets[refused];
  const owner = wanted[socket?.wanted ?? 0];
  return owner && { ...owner, port: socket?.port ?? owner.port };
}

type Handle = { fd: number; getsockname: (out: Partial<AddressInfo>) => number; close: () => void };

/**
 * Node's public servers accept as soon as they listen. Its cluster module binds by this function for workers, and
 * node:net exports the function for that module.
 */
const { _createServerHandle: createHandle } = net as unknown as {
  _createServerHandle: (host: string, port: number, family: 4 | 6) => Handle | number;
};

function bind(host: string, port: number): { handle: Handle; port: number } | "taken" | "no-address" {
  const handle = createHandle(host, port, net.isIPv6(host) ? 6 : 4);
  const address: Partial<AddressInfo> = {};
  // libuv reports a taken port at the next call.
  const code = typeof handle === "number" ? handle : handle.getsockname(address);
  if (code === 0 && typeof handle !== "number" && address.port !== undefined) return { handle, port: address.port };
  if (typeof handle !== "number") handle.close();
  const name = getSystemErrorName(code);
  if (name === "EADDRINUSE") return "taken";
  if (host === "::1" && ["EADDRNOTAVAIL", "EAFNOSUPPORT"].includes(name)) return "no-address";
  throw new Error(`Sluice cannot listen on port ${port} of ${host} (${name}).`);
}

const answer = z.object({ index: z.int(), code: z.string() });

/** Makes bound sockets listen; returns the index of one whose port is taken. */
async function beginListening(descriptors: number[]): Promise<number | undefined> {
  const program = path.join(import.meta.dirname, "begin-listening.ts");
  const child = spawn(process.execPath, [program, String(descriptors.length)], {
    stdio: ["ignore", "pipe", "inherit", ...descriptors],
  });
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code === 0) return undefined;
  const refused = answer.parse(JSON.parse(output || "{}"));
  if (refused.code !== "EADDRINUSE") throw new Error(`Sluice cannot listen on a socket (${refused.code}).`);
  return refused.index;
}

/**
 * The owner of a taken port. `predecessor`: a process of this state directory, known by its arguments (gpud) or its
 * environment. `unknown`: neither can be read, for example while the process ends. `other`: any other process.
 */
async function kindOf(owner: PortOwner | undefined, stateDir: string): Promise<"unknown" | "predecessor" | "other"> {
  if (owner?.process === undefined) return "unknown";
  const { pid, command } = owner.process;
  if (pid === process.pid) return "other";
  if (command.split(" ").includes(path.join(stateDir, "gpud"))) return "predecessor";
  const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
  if (environment === "") return "unknown";
  return environment.split("\0").includes(`SLUICE_STATE_DIR=${stateDir}`) ? "predecessor" : "other";
}
