/** One run of the embedded PostgreSQL, started by this process or found running, and its supervision. */
import type { ChildProcess } from "node:child_process";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Binaries, launch } from "./embedded-program.ts";

export type Run = {
  pid: number | undefined;
  /** Settles with the exit code or the signal when the server has ended. */
  ended: Promise<string>;
  stop: () => Promise<void>;
};

/** Interval of checks on a server that is not a child of this process. */
const LOOK_MS = 500;
/** Uptime after which the pauses before restarts begin anew. */
const STABLE_MS = 30_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;

/** Starts the server; settles when it accepts connections. */
export async function startRun(
  binaries: Binaries,
  data: string,
  settings: Record<string, string>,
  onLog?: (line: string) => void,
): Promise<Run> {
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const child = launch(binaries.postgres, ["-D", data, ...flags]);
  const ended = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => resolve(signal ?? String(code)));
  });
  await ready(child, onLog);
  const stop = async () => {
    // SIGINT is PostgreSQL's fast shutdown: open transactions are rolled back, nothing is lost.
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGINT");
    await ended;
  };
  return { pid: child.pid, ended, stop };
}

/**
 * The server that already works on this data directory, and the folder of its socket: lines 1 and 5 of postmaster.pid.
 * The file of a server that was killed names a process that has ended, or another program.
 */
export async function findRun(data: string): Promise<(Run & { socketFolder: string }) | undefined> {
  const lines = (await readFile(path.join(data, "postmaster.pid"), "utf8").catch(() => "")).split("\n");
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 0 || !(await worksOn(pid, data))) return undefined;
  const ended = (async () => {
    while (await worksOn(pid, data)) await sleep(LOOK_MS, undefined, { ref: false });
    return "an unknown code";
  })();
  const stop = async () => {
    if (await worksOn(pid, data)) process.kill(pid, "SIGINT");
    for (let waited = 0; (await worksOn(pid, data)) && waited < 10_000; waited += 50) await sleep(50);
  };
  return { pid, socketFolder: lines[4] ?? "", ended, stop };
}

async function worksOn(pid: number, data: string): Promise<boolean> {
  const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return command.split("\0").includes(data);
}

/**
 * Restarts a server by `again` each time that the server ends by itself, and calls `onRestart` with the reason. Pauses
 * grow while starts fail. Returns a function that stops the current run.
 */
export function supervise(first: Run, again: () => Promise<Run>, onRestart: (reason: string) => void): Run["stop"] {
  let current = first;
  const stopping = new AbortController();
  const { signal } = stopping;
  const pause = async (failures: number) => {
    const ms = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures);
    await sleep(ms, undefined, { signal }).catch(() => undefined);
  };
  const restart = async (failures: number): Promise<number> => {
    for (let tries = failures; ; tries++) {
      await pause(tries);
      if (signal.aborted) return tries;
      try {
        current = await again();
        return tries;
      } catch (error) {
        onRestart(error instanceof Error ? error.message : String(error));
      }
    }
  };
  const work = (async () => {
    for (let failures = 0; !signal.aborted; failures++) {
      const started = performance.now();
      const how = await current.ended;
      if (signal.aborted) return;
      if (performance.now() - started > STABLE_MS) failures = 0;
      onRestart(`PostgreSQL ended with ${how}`);
      failures = await restart(failures);
    }
  })();
  return async () => {
    stopping.abort();
    await current.stop();
    await work;
    // A restart that was under way has made another run.
    await current.stop();
  };
}

async function ready(child: ChildProcess, onLog?: (line: string) => void): Promise<void> {
  const lines: string[] = [];
  await new Promise<void>((resolve, reject) => {
    let rest = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      rest += chunk.toString();
      const parts = rest.split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) {
        onLog?.(line);
        lines.push(line);
        if (lines.length > 50) lines.shift();
        if (line.includes("ready to accept connections")) resolve();
      }
    });
    child.stdout?.resume();
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      reject(new Error(`PostgreSQL ended with ${signal ?? code}:\n${lines.join("\n")}`)),
    );
  });
}
