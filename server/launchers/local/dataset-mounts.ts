/** The datasets of a local workspace: which folders it mounts, and reading them into this machine's cache. */
import { readFile } from "node:fs/promises";
import { LARGER_THAN_MEMORY, UNREADABLE_FILES } from "#server/launchers/cache-words.ts";
import type { DatasetMount, Prefetched } from "#server/launchers/launcher.ts";
import { measureFolder, readThrough, registeredFolder, toldOf } from "./dataset-folder.ts";

export type DatasetFolder = { name: string; folder: string; writable: boolean };

/** What can be mounted; what cannot is told and left out, so that a workspace starts without a dataset that is gone. */
export async function foldersOf(
  datasets: readonly DatasetMount[],
  onLine: (line: string) => void,
): Promise<DatasetFolder[]> {
  const found: DatasetFolder[] = [];
  for (const { name, writable, ...dataset } of datasets) {
    const folder = await folderOf(dataset);
    if (typeof folder === "string") {
      onLine(`~/datasets/${name}, ${writable ? "which may be written to" : "read-only"}`);
      found.push({ name, folder, writable });
    } else onLine(`Without ~/datasets/${name}: ${folder.reason}`);
  }
  return found;
}

type Located = Pick<DatasetMount, "source" | "team">;

async function folderOf({ source, team }: Located): Promise<string | { reason: string }> {
  if (source.kind !== "folder") return { reason: "it is no folder of this machine." };
  try {
    return await registeredFolder(source.path, team);
  } catch (error) {
    return { reason: toldOf(error) };
  }
}

/** Of the memory that is free for files, so much may one dataset take. */
const CACHE_PART = 0.5;

/**
 * Reads a folder's files once, so that notebooks find them in memory. More than half of what is free is not read: it
 * would push out what was read before.
 */
export async function prefetchFolder(
  dataset: DatasetMount,
  tell: (so: Prefetched) => boolean,
  signal: AbortSignal,
  freeBytes: () => Promise<number> = availableMemory,
): Promise<Prefetched | undefined> {
  const folder = await folderOf(dataset);
  let so: Prefetched = { state: "reading", bytes: 0, totalBytes: null, message: null };
  if (typeof folder !== "string") return { ...so, state: "missing", message: folder.reason };
  if (!dataset.prefetch || !tell(so)) return undefined;
  try {
    const { bytes: totalBytes } = await measureFolder(folder, signal);
    const most = Math.floor((await freeBytes()) * CACHE_PART);
    so = { ...so, totalBytes };
    await readThrough(
      folder,
      (bytes) => {
        so = { ...so, bytes };
        return bytes < most && tell(so);
      },
      signal,
    );
    if (so.bytes < totalBytes && so.bytes >= most) {
      return { ...so, state: "partly", message: LARGER_THAN_MEMORY };
    }
    const unread = so.bytes < totalBytes;
    return { ...so, state: unread ? "partly" : "done", message: unread ? UNREADABLE_FILES : null };
  } catch (error) {
    return { ...so, state: "failed", message: toldOf(error) };
  }
}

/** Memory that can be had without swapping, bytes. */
async function availableMemory(): Promise<number> {
  const found = /^MemAvailable:\s+(\d+) kB$/m.exec(await readFile("/proc/meminfo", "utf8"));
  return Number(found?.[1] ?? 0) * 1024;
}
