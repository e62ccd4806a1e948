// Plain JavaScript: `bootstrap.mjs` needs it before there are any packages.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

/** The folder for results that are expensive to make and the same for every checkout. */
export function cacheFolder(...names) {
  return path.join(process.env.XDG_CACHE_HOME ?? path.join(homedir(), ".cache"), "sluice", ...names);
}

/** Copies a folder with its times; shares blocks where the file system can. False when the copy failed. */
export function copyFolder(from, to) {
  mkdirSync(path.dirname(to), { recursive: true });
  return spawnSync("cp", ["-a", "--reflink=auto", from, to], { stdio: "ignore" }).status === 0;
}

/**
 * Puts a copy of `from` into the cache as `<kind>/<key>`, whole or not at all, in place of an older one. Entries beyond
 * the `limit` that were used last are removed.
 */
export function keepFolder(kind, key, from, limit = 2) {
  const entry = cacheFolder(kind, key);
  const unfinished = `${entry}.${process.pid}`;
  if (copyFolder(from, unfinished)) {
    rmSync(entry, { recursive: true, force: true });
    renameSync(unfinished, entry);
    touch(entry);
  } else rmSync(unfinished, { recursive: true, force: true });
  prune(cacheFolder(kind), limit);
}

/** Copies the cache's `<kind>/<key>` to `to`, which must not exist; false when the cache has no such entry. */
export function takeFolder(kind, key, to) {
  const entry = cacheFolder(kind, key);
  if (!existsSync(entry)) return false;
  const unfinished = `${to}.${process.pid}`;
  if (!copyFolder(entry, unfinished)) {
    rmSync(unfinished, { recursive: true, force: true });
    return false;
  }
  renameSync(unfinished, to);
  touch(entry);
  return true;
}

function touch(entry) {
  const now = new Date();
  utimesSync(entry, now, now);
}

/** An entry of another process that is not finished yet counts as well, and is the youngest. */
function prune(folder, limit) {
  const entries = readdirSync(folder).map((name) => path.join(folder, name));
  const byAge = entries.map((entry) => [entry, statSync(entry).mtimeMs]).sort((a, b) => b[1] - a[1]);
  for (const [entry] of byAge.slice(limit)) rmSync(entry, { recursive: true, force: true });
}
