/** Broker processes that are killed with -9 now and then and come back on the same port. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

export type Brokers = { url: () => string; kills: () => number; stop: () => Promise<void> };

const script = new URL("./broker-process.ts", import.meta.url).pathname;

export async function startBrokers(
  count: number,
  environment: Record<string, string>,
  killEveryMs: number,
): Promise<Brokers> {
  const slots = await Promise.all(Array.from({ length: count }, async () => await launch(environment, 0)));
  let kills = 0;
  let stopped = false;
  let restarting: Promise<void> | undefined;

  const killOne = async (): Promise<void> => {
    const index = kills % slots.length;
    const slot = slots[index];
    if (slot === undefined || stopped) return;
    kills += 1;
    const gone = once(slot.child, "exit");
    slot.child.kill("SIGKILL");
    await gone;
    slots[index] = await launch(environment, slot.port);
  };
  const timer = setInterval(() => {
    restarting ??= killOne().finally(() => {
      restarting = undefined;
    });
  }, killEveryMs);

  let turn = 0;
  return {
    url: () => {
      turn += 1;
      return `http://127.0.0.1:${slots[turn % slots.length]?.port ?? 0}`;
    },
    kills: () => kills,
    stop: async () => {
      stopped = true;
      clearInterval(timer);
      await restarting;
      await Promise.all(
        slots.map(async ({ child }) => {
          const gone = once(child, "exit");
          child.kill("SIGKILL");
          await gone;
        }),
      );
    },
  };
}

async function launch(
  environment: Record<string, string>,
  port: number,
): Promise<{ child: ChildProcess; port: number }> {
  const child = spawn(process.execPath, [script], {
    env: { ...process.env, ...environment, SLUICE_BROKER_PORT: String(port), SLUICE_LOG_LEVEL: "error" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ready = new Promise<number>((resolve, reject) => {
    child.stdout?.once("data", (data: Buffer) => {
      const line = JSON.parse(data.toString("utf8")) as { port: number };
      resolve(line.port);
    });
    child.once("exit", (code) => reject(new Error(`a broker ended with ${code} before it was ready`)));
  });
  return { child, port: await ready };
}
