/** A lock between processes: a file that names its holder's process start, so that a dead holder's lock is void. */
import { readFile, rm, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { isAlive, processStat } from "./processes.ts";

type LockOptions = { onLine: (line: string) => void; waiting: string; signal?: AbortSignal };

/** Runs `work` while no other process holds `file`. */
export async function withFileLock<T>(file: string, options: LockOptions, work: () => Promise<T>): Promise<T> {
  const self = JSON.stringify({ pid: process.pid, startTime: (await processStat(process.pid))?.startTime ?? 0 });
  let told = false;
  for (;;) {
    options.signal?.throwIfAborted();
    if (await take(file, self)) break;
    if (!(await holderAlive(file))) {
      await rm(file, { force: true });
      continue;
    }
    if (!told) options.onLine(options.waiting);
    told = true;
    await sleep(300);
  }
  try {
    return await work();
  } finally {
    await rm(file, { force: true });
  }
}

async function take(file: string, self: string): Promise<boolean> {
  return await writeFile(file, self, { flag: "wx", mode: 0o600 }).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
      throw error;
    },
  );
}

async function holderAlive(file: string): Promise<boolean> {
  // An empty file is one that is just being written.
  for (let attempt = 0; attempt < 5; attempt++) {
    const text = await readFile(file, "utf8").catch(() => undefined);
    if (text === undefined) return false;
    try {
      const holder: unknown = JSON.parse(text);
      if (typeof holder === "object" && holder !== null && "pid" in holder && "startTime" in holder) {
        return await isAlive({ pid: Number(holder.pid), startTime: Number(holder.startTime) });
      }
    } catch {
      await sleep(50);
    }
  }
  return false;
}
