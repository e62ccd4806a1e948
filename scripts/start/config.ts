/** Ports and addresses of this installation, kept in the state directory so that workspaces find them again. */
import { readFile, rename, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import path from "node:path";
import { z } from "zod";

const kept = z.object({
  portalPort: z.int(),
  brokerPort: z.int(),
  brokerInternalPort: z.int(),
  gatewayPort: z.int(),
  gpudPort: z.int(),
});
export type Ports = z.infer<typeof kept>;

const DEFAULTS: Ports = {
  portalPort: 3000,
  brokerPort: 3001,
  gatewayPort: 3002,
  brokerInternalPort: 3003,
  gpudPort: 3010,
};
const VARIABLES: Record<keyof Ports, string> = {
  portalPort: "SLUICE_PORTAL_PORT",
  brokerPort: "SLUICE_BROKER_PORT",
  brokerInternalPort: "SLUICE_BROKER_INTERNAL_PORT",
  gatewayPort: "SLUICE_GATEWAY_PORT",
  gpudPort: "SLUICE_GPUD_PORT",
};

/** The ports to use: given by environment, else the ones of the last start, else the first free from the default on. */
export async function choosePorts(stateDir: string): Promise<{ ports: Ports; moved: string[] }> {
  const file = path.join(stateDir, "config.json");
  const before = kept.partial().safeParse(JSON.parse(await readFile(file, "utf8").catch(() => "{}")));
  const last: Partial<Ports> = before.success ? before.data : {};
  const ports = { ...DEFAULTS };
  const moved: string[] = [];
  const taken = new Set<number>();
  for (const key of Object.keys(DEFAULTS) as (keyof Ports)[]) {
    const given = process.env[VARIABLES[key]];
    const wanted = given ? Number(given) : (last[key] ?? DEFAULTS[key]);
    const port = given ? wanted : await firstFree(wanted, taken);
    if (port !== wanted && last[key] !== undefined) moved.push(`${key} moved from ${wanted} to ${port}`);
    ports[key] = port;
    taken.add(port);
  }
  await writeFile(`${file}.new`, `${JSON.stringify(ports, null, 2)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
  return { ports, moved };
}

async function firstFree(from: number, taken: ReadonlySet<number>): Promise<number> {
  for (let port = from; port < from + 1000; port++) {
    if (!taken.has(port) && (await isFree(port))) return port;
  }
  throw new Error(`No free port from ${from} on.`);
}

async function isFree(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
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
