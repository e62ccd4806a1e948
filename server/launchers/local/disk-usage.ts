/** Disk space of folders that workspaces and builds write to. */
import { runLines } from "./processes.ts";

/** A measurement that takes longer is given up: the folders hold millions of files, and the disk serves others. */
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
 * Bytes that folders take on the disk. Links are not followed, a file with several names counts once, and other file
 * systems are left out. Missing and unreadable folders count as empty. Throws after the timeout.
 */
export async function bytesOf(folders: readonly string[], options: MeasureOptions = {}): Promise<number> {
  const { signal, timeoutMs = MEASURE_MS, asOwner = false } = options;
  // Files come and go meanwhile, so du may end with an error. `timeout` ends with 124 or more, and ends du as well when
  // the signal has ended the shell alone.
  const limit = `timeout -s KILL ${timeoutMs / 1000} nice -n 19`;
  const owner = asOwner ? `own=; ${AS_OWNER} true 2>/dev/null && own="${AS_OWNER} --"; ` : "own=; ";
  const measure = `${owner}${limit} $own du --summarize --block-size=1024 --one-file-system -- "$@" 2>/dev/null; [ $? -lt 124 ]`;
  const lines = await runLines("sh", ["-c", measure, "du", ...folders], {
    killSignal: "SIGKILL",
    ...(signal && { signal }),
  });
  return lines.reduce((sum, line) => sum + Number.parseInt(line, 10) * 1024, 0);
}
