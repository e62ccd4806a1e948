/** Disk space of folders that workspaces and builds write to. */
import { spawn } from "node:child_process";
import { linesOf, runLines } from "./processes.ts";

/** Timeout of a measurement: folders may hold millions of files, and the disk is shared. */
const MEASURE_MS = 60_000;

export type MeasureOptions = {
  signal?: AbortSignal;
  timeoutMs?: number;
  /** Reads folders of this process's user whatever their mode, where the host has user namespaces. */
  asOwner?: boolean;
};

/** Root of a user namespace reads the files of its maker. Nothing of their modes changes. */
const AS_OWNER = "unshare --user --map-root-user";

/**
 * Bytes that folders take on the disk. Links are not followed, a hard-linked file counts once, and other file
 * systems are left out. Missing and unreadable folders count as empty. Throws after the timeout.
 */
export async function bytesOf(folders: readonly string[], options: MeasureOptions = {}): Promise<number> {
  const { signal, timeoutMs = MEASURE_MS, asOwner = false } = options;
  // Files change during the measurement, so du may end with an error. `timeout` exits with 124 or more. It also ends du
  // if the signal has ended the shell only.
  const limit = `timeout -s KILL ${timeoutMs / 1000} nice -n 19`;
  const owner = asOwner ? ownerPrefix() : "";
  const measure = `${limit} ${owner} du --summarize --block-size=1024 --one-file-system -- "$@" 2>/dev/null; [ $? -lt 124 ]`;
  const lines = await runLines("sh", ["-c", measure, "du", ...folders], {
    killSignal: "SIGKILL",
    ...(signal && { signal }),
  });
  return lines.reduce((sum, line) => sum + Number.parseInt(line, 10) * 1024, 0);
}

/** Hard-linked files that are remembered; further ones count once for each name. */
const MOST_LINKED = 100_000;

/**
 * Bytes of all whose content or status changed in the last minutes, also when a program sets other times. Links are not
 * followed, a hard-linked file counts once, and other file systems are left out. Folders that their owner may not read
 * count where the host has user namespaces. When the signal ends it: the bytes found so far.
 */
export async function recentBytesOf(folders: readonly string[], minutes: number, signal: AbortSignal): Promise<number> {
  // No name is printed: it could hold a line break.
  const words = ["-xdev", "-cmin", `-${minutes}`, "-printf", "%n %D:%i %b\\n"];
  const find = spawn("sh", ["-c", `exec ${ownerPrefix()} find "$@"`, "find", ...folders, ...words], {
    stdio: ["ignore", "pipe", "ignore"],
    signal,
    killSignal: "SIGKILL",
  });
  find.once("error", () => undefined);
  const linked = new Set<string>();
  let blocks = 0;
  for await (const line of linesOf(find.stdout)) {
    const [names = "", file = "", taken = "0"] = line.split(" ");
    if (names !== "1" && linked.has(file)) continue;
    if (names !== "1" && linked.size < MOST_LINKED) linked.add(file);
    blocks += Number(taken);
  }
  return blocks * 512;
}

/** Shell words that let a process without root read the files of its user whatever their mode. */
function ownerPrefix(): string {
  return process.getuid?.() === 0 ? "" : `$(${AS_OWNER} true 2>/dev/null && echo ${AS_OWNER} --)`;
}
