/** Content fingerprints that say whether a build is stale. */
import { createHash } from "node:crypto";
import { readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import path from "node:path";

const SKIPPED = new Set(["node_modules", "target", ".next", ".git", "__pycache__", "dist"]);
/** Tests stand beside what they test, and are in no build. */
const TEST = /\.(test|cluster|guest)\.tsx?$/;

/** SHA-256 over names and contents of the files below the given paths, tests left out. */
export async function fingerprint(root: string, paths: readonly string[]): Promise<string> {
  const hash = createHash("sha256");
  for (const start of paths) {
    for (const file of await filesBelow(path.join(root, start))) {
      hash
        .update(path.relative(root, file))
        .update("\0")
        .update(await readFile(file))
        .update("\0");
    }
  }
  return hash.digest("hex");
}

async function filesBelow(start: string): Promise<string[]> {
  const info = await stat(start).catch(() => undefined);
  if (info === undefined) return [];
  if (info.isFile()) return [start];
  const entries = (await readdir(start, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
  const nested = await Promise.all(
    entries
      .filter(({ name }) => !SKIPPED.has(name) && !TEST.test(name))
      .filter((entry) => entry.isFile() || entry.isDirectory())
      .map((entry) => filesBelow(path.join(start, entry.name))),
  );
  return nested.flat();
}

/** Runs `build` unless `stampFile` already holds this fingerprint; the stamp is written only when it succeeded. */
export async function unlessFresh(
  stampFile: string,
  current: string,
  build: () => Promise<void>,
): Promise<"built" | "fresh"> {
  const before = await readFile(stampFile, "utf8").catch(() => "");
  if (before === current) return "fresh";
  await build();
  // Put in its place: the file before may be a hard link, in another state folder as well.
  const unfinished = `${stampFile}.${process.pid}`;
  await writeFile(unfinished, current);
  await rename(unfinished, stampFile);
  return "built";
}
