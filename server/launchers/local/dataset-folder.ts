/**
 * Datasets that are folders of this machine. Whoever registers one names a path, and the broker may have more rights
 * than they: only what the operator has set aside can be mounted.
 */
import { constants, open, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { env } from "#server/env.ts";
import { type WalkedFile, walkFiles } from "./walk-files.ts";

const TEAM = "{team}";

export type FolderOwner = {
  /** The dataset's team by its name; undefined: everybody's. */
  team: string | undefined;
  /** Only what is set aside for that team. */
  teamOnly: boolean;
};

/** The folders below which a dataset may lie. */
export function allowedFolders({ team, teamOnly }: FolderOwner): string[] {
  const { SLUICE_DATASET_FOLDERS: given, SLUICE_STATE_DIR: stateDir } = env();
  const own = path.join(stateDir, "datasets");
  const folders = given.length > 0 ? given : [own, path.join(own, "teams", TEAM)];
  return folders.flatMap((folder) => {
    if (!folder.includes(TEAM)) return teamOnly ? [] : [path.resolve(folder)];
    return team === undefined ? [] : [path.resolve(folder.replaceAll(TEAM, team))];
  });
}

/** Why a folder cannot be mounted: the message names it, for whoever may see the source. */
export class FolderError extends Error {
  /** For everybody else: without the path. */
  readonly told: string;

  constructor(message: string, told: string) {
    super(message);
    this.told = told;
  }
}

/** What everybody may read of an error about a dataset's folder: file errors name paths, too. */
export function toldOf(error: unknown): string {
  return error instanceof FolderError ? error.told : "its folder cannot be read.";
}

/** The folder with every link followed, when it is there and may be mounted; else an error that says what to do. */
export async function resolveFolder(folder: string, owner: FolderOwner): Promise<string> {
  const allowed = allowedFolders(owner);
  const resolved = await realpath(folder).catch(() => undefined);
  const real = await Promise.all(allowed.map(async (each) => await realpath(each).catch(() => each)));
  const inside = (at: string) => real.some((each) => isBelow(at, each));
  // Of what lies elsewhere nobody learns here whether it is there.
  if (!inside(resolved ?? path.resolve(folder))) {
    const where = allowed.length === 0 ? "no folder is set aside for it" : `datasets lie below ${allowed.join(" or ")}`;
    throw new FolderError(
      `${folder} cannot be mounted: ${where}. The operator sets SLUICE_DATASET_FOLDERS.`,
      "its folder is not set aside for datasets.",
    );
  }
  if (resolved === undefined)
    throw new FolderError(`There is no folder ${folder} on this machine.`, "its folder is not on this machine.");
  if (!(await stat(resolved)).isDirectory())
    throw new FolderError(`${folder} is a file. A dataset is a folder.`, "it has become a file.");
  return resolved;
}

/** The folder of a dataset as it was registered, when it still is where it was: nobody has put a link in its place. */
export async function registeredFolder(folder: string, team: string | undefined): Promise<string> {
  const resolved = await resolveFolder(folder, { team, teamOnly: false });
  if (resolved === folder) return resolved;
  throw new FolderError(
    `${folder} has become a link. Register the folder that it leads to.`,
    "its folder has become a link.",
  );
}

/** Whether a path lies below another, however deep. */
export function isBelow(inner: string, outer: string): boolean {
  const relative = path.relative(outer, inner);
  return relative !== "" && relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

export type FolderSize = { bytes: number; files: number };

/**
 * Bytes and number of the files in a folder. Links are not followed, a hard-linked file counts once, and
 * unreadable folders count as empty. Throws `FolderError` above the limits of a walk.
 */
export async function measureFolder(folder: string, signal?: AbortSignal): Promise<FolderSize> {
  const size = { bytes: 0, files: 0 };
  for await (const file of filesOf(folder, signal)) {
    size.bytes += file.bytes;
    size.files += 1;
  }
  return size;
}

const PIECE = 1 << 20;
/** What was a file a moment ago may be a link or a pipe by now. */
const LOOK_ONLY = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Reads every file of a folder once, so that the kernel has it in its cache, and tells how many bytes were read after
 * each piece. Ends early when `onBytes` answers false.
 */
export async function readThrough(
  folder: string,
  onBytes: (bytes: number) => boolean,
  signal?: AbortSignal,
): Promise<void> {
  const piece = Buffer.allocUnsafe(PIECE);
  let bytes = 0;
  for await (const { name } of filesOf(folder, signal)) {
    const file = await open(name, LOOK_ONLY).catch(() => undefined);
    if (file === undefined) continue;
    try {
      for (;;) {
        signal?.throwIfAborted();
        const { bytesRead } = await file.read(piece, 0, PIECE);
        if (bytesRead === 0) break;
        bytes += bytesRead;
        if (!onBytes(bytes)) return;
      }
    } finally {
      await file.close();
    }
  }
}

/** The files of a dataset, within limits: without them, a writer of the dataset could keep the broker busy forever. */
function filesOf(folder: string, signal: AbortSignal | undefined): AsyncGenerator<WalkedFile> {
  const aboveLimit = (what: string) =>
    new FolderError(
      `${folder} has more than ${what}. Register a smaller folder, or pack its files into archives.`,
      `its folder has more than ${what}.`,
    );
  return walkFiles(folder, { aboveLimit, signal });
}
