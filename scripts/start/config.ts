/** Ports and addresses of this installation, kept in the state directory so that workspaces find them again. */
import { readFile, rename, writeFile } from "node:fs/promises";
import { createServer, isIPv6 } from "node:net";
import path from "node:path";
import { z } from "zod";
import { type HeldSockets, holdPorts } from "#scripts/start/held-sockets.ts";

const kept = z.object({
  portalPort: z.int(),
  brokerPort: z.int(),
  brokerInternalPort: z.int(),
  gatewayPort: z.int(),
  gpudPort: z.int(),
});
export type Ports = z.infer<typeof kept>;
type PortName = keyof Ports;

const DEFAULTS: Ports = {
  portalPort: 3000,
  brokerPort: 3001,
  gatewayPort: 3002,
  brokerInternalPort: 3003,
  gpudPort: 3010,
};
const PORT_NAMES = Object.keys(DEFAULTS) as PortName[];
const VARIABLES: Record<PortName, string> = {
  portalPort: "SLUICE_PORTAL_PORT",
  brokerPort: "SLUICE_BROKER_PORT",
  brokerInternalPort: "SLUICE_BROKER_INTERNAL_PORT",
  gatewayPort: "SLUICE_GATEWAY_PORT",
  gpudPort: "SLUICE_GPUD_PORT",
};

const LOOPBACK = "127.0.0.1";
const LOOPBACK_6 = "::1";

/**
 * The ports to use: given by environment, else the ones of the last start, else the default. A default port that is taken
 * moves to the next free one; other ports are known to workspaces and people, and do not move.
 */
export async function choosePorts(stateDir: string): Promise<Ports> {
  const before = kept.partial().safeParse(JSON.parse(await readFile(fileOf(stateDir), "utf8").catch(() => "{}")));
  const last: Partial<Ports> = before.success ? before.data : {};
  const ports = { ...DEFAULTS };
  const chosen = new Map<number, PortName>();
  for (const name of PORT_NAMES) {
    const given = process.env[VARIABLES[name]];
    const port = given ? parsePort(VARIABLES[name], given) : (last[name] ?? (await firstFree(DEFAULTS[name], chosen)));
    const other = chosen.get(port);
    if (port !== 0 && other !== undefined) {
      throw new Error(`${VARIABLES[other]} and ${VARIABLES[name]} are both ${port}. Set one of them to another port.`);
    }
    ports[name] = port;
    chosen.set(port, name);
  }
  return ports;
}

/** Holds the ports for the processes of this start, and keeps the choice for the next one. */
export async function holdChosenPorts(stateDir: string): Promise<{ ports: Ports; sockets: HeldSockets }> {
  const ports = await choosePorts(stateDir);
  const listen = process.env.SLUICE_LISTEN || LOOPBACK;
  const hosts: Record<PortName, string[]> = {
    // Browsers reach these two by `localhost`, which is ::1 as well.
    portalPort: [LOOPBACK, LOOPBACK_6],
    gatewayPort: isIPv6(listen) ? [listen] : [listen, LOOPBACK_6],
    brokerPort: [listen],
    brokerInternalPort: [listen],
    gpudPort: [LOOPBACK],
  };
  const wanted = PORT_NAMES.map((name) => ({ port: ports[name], variable: VARIABLES[name], hosts: hosts[name] }));
  const sockets = await holdPorts(wanted, stateDir);
  for (const [index, name] of PORT_NAMES.entries()) ports[name] = sockets.ports[index] ?? ports[name];
  const file = fileOf(stateDir);
  await writeFile(`${file}.new`, `${JSON.stringify(ports, null, 2)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
  return { ports, sockets };
}

const fileOf = (stateDir: string) => path.join(stateDir, "config.json");

function parsePort(variable: string, text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new Error(`${variable} is "${text}", which is no port. Set it to a number from 0 to 65535.`);
}

async function firstFree(from: number, chosen: ReadonlyMap<number, unknown>): Promise<number> {
  for (let port = from; port < from + 1000; port++) {
    if (!chosen.has(port) && (await isFree(port))) return port;
  }
  throw new Error(`No free port from ${from} on.`);
}

async function isFree(port: number): Promise<boolean> {
  const [v4, v6] = await Promise.all([LOOPBACK, LOOPBACK_6].map((host) => tryPort(port, host)));
  return v4 === undefined && v6 !== "EADDRINUSE";
}

/** The code of the error that a server would get there; undefined when it could listen. */
async function tryPort(port: number, host: string): Promise<string | undefined> {
  return await new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    probe.listen(port, host, () => probe.close(() => resolve(undefined)));
  });
}

/** The environment that every process of the installation is started with. */
export function processEnvironment(stateDir: string, ports: Ports, databaseUrl: string): NodeJS.ProcessEnv {
  const own = {
    SLUICE_PORTAL_URL: `http://localhost:${ports.portalPort}`,
    SLUICE_BROKER_URL: `http://127.0.0.1:${ports.brokerPort}`,
    SLUICE_GATEWAY_HOST: "localhost",
    SLUICE_GATEWAY_URL: `http://localhost:${ports.gatewayPort}`,
  };
  return {
    ...own,
    ...process.env,
    NODE_ENV: "production",
    NEXT_TELEMETRY_DISABLED: "1",
    DATABASE_URL: databaseUrl,
    SLUICE_STATE_DIR: stateDir,
    SLUICE_PORTAL_PORT: String(ports.portalPort),
    SLUICE_BROKER_PORT: String(ports.brokerPort),
    SLUICE_BROKER_INTERNAL_PORT: String(ports.brokerInternalPort),
    SLUICE_GATEWAY_PORT: String(ports.gatewayPort),
  };
}
