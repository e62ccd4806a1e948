/** Running other programs: to their end with their lines, or as a service that must stay up. */
import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Watchdog } from "#scripts/lib/watchdog.ts";
import { onLines } from "#server/lines.ts";
import { type Output, outputTo, type Rotation } from "#server/output.ts";

export type RunOptions = {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Every line of output, both streams; a line above 16 Ki characters in pieces. */
  onLine?: (line: string) => void;
  /** Lower priority, for builds that must not slow down what people already see. */
  background?: boolean;
  /** Seconds after which it is ended, with all that it started: for a program that may hang. */
  limit?: number;
};

/** What `timeout` ends with when it has ended the program: by SIGTERM, or by SIGKILL after that. */
const TIMED_OUT = [124, 137];
/** Time for the last output after the end. A program in the background can keep the output open for longer. */
const LAST_OUTPUT_MS = 2_000;

/** Runs a program to its end, or to ours; throws with the last lines of its output when it fails. */
export async function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<void> {
  const { background = false, limit } = options;
  const before = [
    ...(background ? ["nice", "-n", "10"] : []),
    ...(limit === undefined ? [] : ["timeout", "--kill-after=10", String(limit)]),
  ];
  const [program = command, ...rest] = [...before, command, ...args];
  const child = spawn(program, rest, { cwd: options.cwd, env: options.env, stdio: ["ignore", "pipe", "pipe"] });
  const tail: string[] = [];
  const onLine = (line: string) => {
    if (line.trim() === "") return;
    tail.push(line);
    if (tail.length > 40) tail.shift();
    options.onLine?.(line);
  };
  for (const stream of [child.stdout, child.stderr]) onLines(stream, onLine);
  const stop = () => child.kill();
  process.once("exit", stop);
  let lastOutput: NodeJS.Timeout | undefined;
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
    child.once("exit", (code) => {
      lastOutput = setTimeout(() => resolve(code), LAST_OUTPUT_MS);
    });
  }).finally(() => process.removeListener("exit", stop));
  clearTimeout(lastOutput);
  for (const stream of [child.stdout, child.stderr]) stream.destroy();
  if (code === 0) return;
  const how =
    limit !== undefined && code !== null && TIMED_OUT.includes(code)
      ? `was ended after ${limit} s`
      : `ended with ${code}`;
  throw new Error(`${command} ${how}:\n${tail.join("\n")}`);
}

/** Why something failed, in the words of its error; undefined when it did not. */
export async function attempt(work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** At most 150 MiB for the log files of a service. */
const LOG_FILES: Rotation = { maxBytes: 50 * 1024 ** 2, earlier: 2 };

export type Service = {
  name: string;
  /** Asks it to end, waits, and ends it for good when it does not. */
  stop: (graceMs?: number) => Promise<void>;
  /** The process id of the run that is up now. */
  pid: () => number | undefined;
};

export type ServiceOptions = {
  command: string;
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  cwd?: string;
  /** Renamed to `<file>.1` and `<file>.2` as it grows. */
  logFile: string;
  /** Recognises the line that says it is ready. */
  ready: (line: string) => boolean;
  readyTimeoutMs?: number;
  /** Ends a run that no longer answers; without one, only a run that ends by itself is started again. */
  watchdog?: Watchdog;
  /** It may end in order by itself and is not started again then. */
  mayEnd?: boolean;
  onRestart?: (reason: string) => void;
  /** Descriptors of this process that each run inherits, from number 3 on. */
  descriptors?: readonly number[];
};

/** Starts a program, waits until it is ready, and starts it again (with growing pauses) when it dies. */
export async function startService(name: string, options: ServiceOptions): Promise<Service> {
  const log = outputTo(options.logFile, undefined, LOG_FILES);
  let stopping = false;
  let watching: { stop: () => void } | undefined;
  let child: ChildProcess = launch(options, log);
  await untilReady(name, child, options);

  const watch = (current: ChildProcess, failures: number, since: number) => {
    let stall: string | undefined;
    watching = options.watchdog?.watch(() => {
      stall = `${name} did not answer for ${Math.round((options.watchdog?.silentMs ?? 0) / 1000)} s and was ended`;
      current.kill("SIGKILL");
    });
    const startAgain = (reason: string) => {
      watching?.stop();
      if (stopping) return;
      options.onRestart?.(reason);
      const next = performance.now() - since > 30_000 ? 0 : failures + 1;
      void sleep(Math.min(10_000, 250 * 2 ** next)).then(() => {
        if (stopping) return;
        child = launch(options, log);
        watch(child, next, performance.now());
      });
    };
    current.once("exit", (code, signal) => {
      if (options.mayEnd === true && code === 0) watching?.stop();
      else startAgain(stall ?? `${name} ended with ${signal ?? code}`);
    });
    // No exit follows when the system had no memory, files or processes left to run the program.
    current.on("error", (error) => {
      if (current.pid === undefined) startAgain(`${name} could not be run (${error.message})`);
    });
  };
  watch(child, 0, performance.now());

  return {
    name,
    pid: () => child.pid,
    stop: async (graceMs = 10_000) => {
      stopping = true;
      watching?.stop();
      await end(child, graceMs);
      log.end();
    },
  };
}

function launch(options: ServiceOptions, log: Output): ChildProcess {
  // A group of its own: a Ctrl-C in the terminal reaches only the start script, which ends things in order.
  const child = spawn(options.command, [...options.args], {
    cwd: options.cwd,
    env: options.env,
    stdio: ["ignore", "pipe", "pipe", ...(options.descriptors ?? [])],
    detached: true,
  });
  for (const stream of [child.stdout, child.stderr]) {
    if (stream !== null) onLines(stream, (line) => log.write(`${line}\n`));
  }
  return child;
}

async function untilReady(name: string, child: ChildProcess, options: ServiceOptions): Promise<void> {
  const tail: string[] = [];
  await new Promise<void>((resolve, reject) => {
    const limit = options.readyTimeoutMs ?? 60_000;
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`${name} was not ready after ${limit / 1000} s:\n${tail.join("\n")}`));
    }, limit);
    const settle = (finish: () => void) => {
      clearTimeout(timer);
      finish();
    };
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      onLines(stream, (line) => {
        tail.push(line);
        if (tail.length > 30) tail.shift();
        if (options.ready(line)) settle(resolve);
      });
    }
    child.once("error", (error) => settle(() => reject(error)));
    child.once("exit", (code, signal) =>
      settle(() => reject(new Error(`${name} ended with ${signal ?? code} before it was ready:\n${tail.join("\n")}`))),
    );
  });
}

async function end(child: ChildProcess, graceMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
  await ended;
  clearTimeout(timer);
}
