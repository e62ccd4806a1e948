/** Walks the files of a folder while hostile programs may change it. */
import type { Dir, Stats } from "node:fs";
import { constants, type FileHandle, lstat, open, opendir } from "node:fs/promises";

export type WalkLimits = {
  /** Files, folders and other entries. */
  entries: number;
  /** Levels of folders. Each level of the walk holds two descriptors. */
  depth: number;
  /** Hard-linked files, which are kept in memory. */
  linkedFiles: number;
};

export const WALK_LIMITS: WalkLimits = { entries: 5_000_000, depth: 100, linkedFiles: 1_000_000 };

export type WalkOptions = {
  /** The error above a limit; `what` names the limit. */
  aboveLimit: (what: string) => Error;
  signal?: AbortSignal | undefined;
  limits?: WalkLimits | undefined;
};

export type WalkedFile = {
  /** Path through a descriptor of the walk: valid until the next file is asked for. */
  name: string;
  bytes: number;
};

const FOLDER_ONLY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * Yields each regular file once, also a hard-linked file. No symbolic link is followed: a folder is opened through the
 * descriptor of its parent, so that replacing a folder by a link has no effect. Unreadable inner folders are left out.
 */
export async function* walkFiles(folder: string, options: WalkOptions): AsyncGenerator<WalkedFile> {
  const { aboveLimit, signal, limits = WALK_LIMITS } = options;
  const levels = [await enter(folder)];
  const linked = new Set<string>();
  let entries = 0;
  try {
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      signal?.throwIfAborted();
      const entry = await level.entries.read();
      if (entry === null) {
        levels.pop();
        await leave(level);
        continue;
      }
      if (++entries > limits.entries) throw aboveLimit(`${limits.entries.toLocaleString("en")} files and folders`);
      const name = `/proc/self/fd/${level.handle.fd}/${entry.name}`;
      if (entry.isDirectory()) {
        if (levels.length >= limits.depth) throw aboveLimit(`${limits.depth} levels of folders`);
        const inner = await enter(name).catch(() => undefined);
        if (inner !== undefined) levels.push(inner);
        continue;
      }
      const found = entry.isFile() ? await lstat(name).catch(() => undefined) : undefined;
      if (found?.isFile() !== true || isKnown(found, linked)) continue;
      if (linked.size > limits.linkedFiles)
        throw aboveLimit(`${limits.linkedFiles.toLocaleString("en")} hard-linked files`);
      yield { name, bytes: found.size };
    }
  } finally {
    for (const level of levels) await leave(level);
  }
}

type Level = { handle: FileHandle; entries: Dir };

async function enter(folder: string): Promise<Level> {
  const handle = await open(folder, FOLDER_ONLY);
  try {
    return { handle, entries: await opendir(`/proc/self/fd/${handle.fd}`, { bufferSize: 256 }) };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function leave({ handle, entries }: Level): Promise<void> {
  await entries.close();
  await handle.close();
}

/** Whether the file was yielded under another name. Records hard-linked files. */
function isKnown({ nlink, dev, ino }: Stats, linked: Set<string>): boolean {
  if (nlink === 1) return false;
  const key = `${dev}:${ino}`;
  if (linked.has(key)) return true;
  linked.add(key);
  return false;
}
