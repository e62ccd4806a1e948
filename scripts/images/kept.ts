/**
 * What images are made of, and they themselves: in one folder for all checkouts, each by its kind and by the hash of what
 * is in it. What nobody has asked for goes: soon when another of its kind has come, else after a month.
 */
import { existsSync } from "node:fs";
import { mkdir, readdir, rm, stat, utimes } from "node:fs/promises";
import path from "node:path";
import { cacheFolder } from "#scripts/lib/cache.mjs";
import { withFileLock } from "#server/launchers/local/file-lock.ts";

/** Longer than it takes from asking for an image until a node has it. */
const SUPERSEDED_MS = 3_600_000;
const UNUSED_MS = 30 * 24 * 3_600_000;

/** What is made once: `<kind>-<tag>` with each of these endings, as a file or folder. */
type Kept<Endings> = { kind: string; tag: string; endings: Endings };
/** Where each lies. */
type Places<Endings> = { -readonly [Index in keyof Endings]: string };

/**
 * Gives where it lies, and makes it when something of it is missing, by one process at a time. `make` puts each in its
 * place when it is whole.
 */
export async function findOrMake<const Endings extends readonly string[]>(
  { kind, tag, endings }: Kept<Endings>,
  say: (line: string) => void,
  make: (...places: Places<Endings>) => Promise<void>,
): Promise<Places<Endings>> {
  const folder = cacheFolder("images");
  await mkdir(folder, { recursive: true });
  const places = endings.map((ending) => path.join(folder, `${kind}-${tag}${ending}`)) as Places<Endings>;
  const waiting = "Another process makes images; waiting for it";
  return await withFileLock(`${folder}.lock`, { onLine: say, waiting }, async () => {
    // First, for its room.
    await prune(folder, kind, new Set(places));
    if (!places.every((place) => existsSync(place))) await make(...places);
    const now = new Date();
    for (const place of places) await utimes(place, now, now);
    return places;
  });
}

async function prune(folder: string, kind: string, wanted: ReadonlySet<string>): Promise<void> {
  // With what was left unfinished of it, and what had no tag.
  const ofKind = new RegExp(`^${kind}(-[0-9a-f]{16})?(\\.|$)`);
  for (const name of await readdir(folder)) {
    const place = path.join(folder, name);
    if (wanted.has(place)) continue;
    const used = (await stat(place)).mtimeMs;
    const limit = ofKind.test(name) ? SUPERSEDED_MS : UNUSED_MS;
    if (Date.now() - used > limit) await rm(place, { recursive: true, force: true });
  }
}
