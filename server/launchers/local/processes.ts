/** Small helpers around child processes and /proc. */
import { spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { LineSplitter } from "#server/lines.ts";

/** A process *start*: a pid alone may have been reused. */
export type ProcessStart = { pid: number; startTime: number };

/** Parent and start time (clock ticks after boot) of a process, or undefined when it is gone or a zombie. */
export async function processStat(pid: number): Promise<{ parent: number; startTime: number } | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The second field is the program's name in parentheses and may hold anything, so fields count from its end.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, parent, startTime] = [fields[0], Number(fields[1]), Number(fields[19])];
  if (state === undefined || state === "Z" || state === "X" || !Number.isFinite(startTime)) return undefined;
  return { parent, startTime };
}

/** Whether this very process still runs. */
export async function isAlive(start: ProcessStart): Promise<boolean> {
  return (await processStat(start.pid))?.startTime === start.startTime;
}

/** The first child of a process. */
export async function childOf(parent: number): Promise<ProcessStart | undefined> {
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await processStat(Number(name));
    if (stat?.parent === parent) return { pid: Number(name), startTime: stat.startTime };
  }
  return undefined;
}

/** Sends a signal; a process that is gone is no error. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

/** The lines of a stream, which may be endless. */
export async function* linesOf(stream: NodeJS.ReadableStream): AsyncGenerator<string> {
  const splitter = new LineSplitter();
  for await (const part of stream) yield* splitter.push(part);
  yield* splitter.end();
}

/** Runs a program to its end and hands over its output line by line. Throws with the last lines when it fails. */
export async function runLines(
  command: string,
  args: string[],
  options: {
    onLine?: (line: string) => void;
    env?: NodeJS.ProcessEnv;
    cwd?: string;
    signal?: AbortSignal;
    /** What `signal` ends it with; SIGTERM. */
    killSignal?: NodeJS.Signals;
  } = {},
): Promise<string[]> {
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: options.env ?? process.env,
    cwd: options.cwd,
    signal: options.signal,
    killSignal: options.killSignal,
  });
  const kept: string[] = [];
  const read = async (stream: NodeJS.ReadableStream) => {
    for await (const line of linesOf(stream)) {
      if (line.trim() === "") continue;
      kept.push(line);
      if (kept.length > 200) kept.shift();
      options.onLine?.(line);
    }
  };
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const [code] = await Promise.all([ended, read(child.stdout), read(child.stderr)]);
  if (code !== 0) {
    throw new Error(`${command} ${args[0] ?? ""} ended with ${code}: ${kept.slice(-8).join(" | ")}`);
  }
  return kept;
}
