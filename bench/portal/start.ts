/** The portal as it is built, on a database. */
import path from "node:path";
import { type Service, startService } from "#scripts/lib/processes.ts";

type Options = {
  stateDir: string;
  databaseUrl: string;
  port: number;
  /** Node's own options. */
  node?: string[];
  env?: Record<string, string>;
};

/** Starts it on loopback; settles when it answers. */
export async function startPortal(
  root: string,
  { stateDir, databaseUrl, port, node = [], env = {} }: Options,
): Promise<Service> {
  return await startService("portal", {
    command: process.execPath,
    args: [...node, "server/portal/main.ts"],
    env: {
      ...process.env,
      ...{ NODE_ENV: "production", SLUICE_STATE_DIR: stateDir, DATABASE_URL: databaseUrl, SLUICE_LOG_LEVEL: "error" },
      ...{ SLUICE_PORTAL_URL: `http://127.0.0.1:${port}`, SLUICE_PORTAL_PORT: String(port) },
      ...env,
    },
    cwd: root,
    logFile: path.join(stateDir, "portal.log"),
    ready: (line) => line.includes(`"ready":"portal"`),
  });
}
