/** The soak's installation: `npm start` with one software GPU, a second GPU server with two, and a clock to set. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { APIRequestContext } from "@playwright/test";
import { run, type Service, startService } from "#scripts/lib/processes.ts";
import { freePort } from "#server/free-port.ts";
import { gpudSockets } from "#server/launchers/local/workspace-files.ts";
import { ADMIN, change, PASSWORD, signInByApi } from "../../../e2e/fixtures/api.ts";
import { type Installation, startInstallation } from "../../../e2e/fixtures/installation.ts";
import type { StateDir } from "./state-dir.ts";
import { findTargets, type Target } from "./targets.ts";

/** The second GPU server's; `npm start` has one. */
const SECOND_GPUS = 2;
export const GPUS = 1 + SECOND_GPUS;

export type Pool = {
  stateDir: string;
  installation: Installation;
  /** As the admin. */
  api: APIRequestContext;
  clock: Clock;
  /** Every process that may be killed. */
  targets: () => Target[];
  stop: () => Promise<void>;
};

export async function startPool(state: StateDir): Promise<Pool> {
  const clock = await Clock.make();
  const installation = await startInstallation({
    stateDir: state.path,
    env: { ...clock.env, SLUICE_ADMIN_EMAIL: ADMIN, SLUICE_ADMIN_PASSWORD: PASSWORD },
  });
  let second: Service | undefined;
  const targets = () => findTargets(state.path, [installation.pid, second?.pid() ?? 0]);
  const stop = async () => {
    await second?.stop();
    await installation.stop({ keepState: true });
    // Workspaces outlive an installation that stops.
    for (const { pid } of targets()) process.kill(pid, "SIGKILL");
    await clock.remove();
  };
  try {
    await installation.ready;
    const api = await signInByApi(installation.portalUrl);
    second = await startSecond(installation, api, clock);
    return { stateDir: state.path, installation, api, clock, targets, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Kept up as systemd keeps a gpud up on a host of its own. */
async function startSecond(
  { stateDir, brokerUrl }: Installation,
  api: APIRequestContext,
  clock: Clock,
): Promise<Service> {
  const { token } = await change<{ token: string }>(api, "post", "/gpu-servers/join-tokens", { name: "second" });
  const options = {
    state: path.join(stateDir, "gpud-second"),
    broker: brokerUrl,
    listen: `127.0.0.1:${await freePort()}`,
    sockets: gpudSockets(stateDir),
    backend: "soft",
    "soft-devices": String(SECOND_GPUS),
    name: "second",
    "join-token": token,
  };
  return await startService("gpud second", {
    command: path.resolve("native/target/release/gpud"),
    args: Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]),
    env: { PATH: process.env.PATH, NODE_ENV: "production", ...clock.env },
    logFile: path.join(stateDir, "logs", "gpud-second.log"),
    ready: (line) => line.includes('"ready":"gpud"'),
  });
}

/**
 * The wall clock of the control plane, PostgreSQL and the second GPU server. The first GPU server (`npm start` hands
 * it no foreign variables) and the workspaces keep the machine's, as hosts whose clock nobody has set.
 */
export class Clock {
  readonly env: Record<string, string>;
  readonly #folder: string;
  readonly #file: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#file = path.join(folder, "offset");
    this.env = { LD_PRELOAD: path.join(folder, "clock.so"), SLUICE_SOAK_CLOCK: this.#file };
    writeFileSync(this.#file, Buffer.alloc(8));
  }

  static async make(): Promise<Clock> {
    const clock = new Clock(mkdtempSync(path.join(tmpdir(), "sluice-clock-")));
    const source = path.join(import.meta.dirname, "clock.c");
    await run("cc", ["-shared", "-fPIC", "-O2", "-o", clock.env.LD_PRELOAD ?? "", source]);
    await run("chmod", ["-R", "a+rX", clock.#folder]);
    return clock;
  }

  /** Seconds ahead of the machine's clock. In place: the programs have mapped the file. */
  async set(seconds: number): Promise<void> {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(seconds));
    const file = await open(this.#file, "r+");
    await file.write(bytes, 0, bytes.length, 0);
    await file.close();
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Asks until the answer is true; false when that takes longer than the limit. An error counts as no. */
export async function eventually(limitMs: number, ask: () => Promise<boolean>): Promise<boolean> {
  for (const until = performance.now() + limitMs; performance.now() < until; await sleep(500)) {
    if (await ask().catch(() => false)) return true;
  }
  return false;
}
