/**
 * A short path to the state directory, for Unix sockets: the path of a socket has at most 107 bytes, and a state
 * directory may lie deep. The short path is a link in a private folder below the temporary folder.
 */
import { createHash } from "node:crypto";
import { lstat, lutimes, mkdir, readlink, rename, symlink, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { unfinishedName } from "#server/unfinished-name.ts";

/** Leaves 47 bytes for the path of a socket within the state directory. */
const SHORT_BYTES = 60;
/** Cleaners of temporary folders delete entries that are some days old. */
const REFRESH_MS = 3_600_000;

/** Links that this process keeps from looking old. */
const refreshed = new Set<string>();

/**
 * A path of at most 60 bytes that leads to `stateDir`: the state directory itself where its path is short, else a link.
 * Throws when another user owns the private folder, since that user could lead the link elsewhere.
 */
export async function shortFolder(stateDir: string): Promise<string> {
  const target = path.resolve(stateDir);
  if (Buffer.byteLength(target) <= SHORT_BYTES) return target;
  const name = createHash("sha256").update(target).digest("hex").slice(0, 16);
  const candidates = [tmpdir(), "/tmp"].map((base) => path.join(base, `sluice-${process.getuid?.() ?? 0}`, name));
  const link = candidates.find((candidate) => Buffer.byteLength(candidate) <= SHORT_BYTES);
  if (link === undefined)
    throw new Error(`The path ${candidates[0]} is too long. Set TMPDIR to a folder near the root.`);
  await makeLink(link, target);
  if (!refreshed.has(link)) {
    refreshed.add(link);
    setInterval(() => void makeLink(link, target).catch(() => undefined), REFRESH_MS).unref();
  }
  return link;
}

async function makeLink(link: string, target: string): Promise<void> {
  const folder = path.dirname(link);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await checkPrivate(folder);
  const now = new Date();
  await utimes(folder, now, now);
  if ((await readlink(link).catch(() => undefined)) === target) {
    await lutimes(link, now, now);
    return;
  }
  // By rename: another process may use the link at this moment.
  const made = unfinishedName(link);
  await symlink(target, made);
  await rename(made, link);
}

async function checkPrivate(folder: string): Promise<void> {
  const found = await lstat(folder);
  const isOwn = found.uid === (process.getuid?.() ?? found.uid);
  if (found.isDirectory() && isOwn && (found.mode & 0o077) === 0) return;
  throw new Error(
    `${folder} must be a folder with mode 0700 that the user of this process owns. Remove ${folder}, or set TMPDIR.`,
  );
}
