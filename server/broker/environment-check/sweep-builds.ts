/** Deletes what was locked and built of proposals here and is of no use any more: each may hold gigabytes. */
import { readdir, rename, stat } from "node:fs/promises";
import path from "node:path";
import { and, eq, exists, inArray, isNotNull, ne, or } from "drizzle-orm";
import type { Database } from "#server/db/client.ts";
import { imageVersions, workspaces } from "#server/db/schema/index.ts";
import { remove, usedEnvironments } from "#server/launchers/local/environment.ts";
import { isThereOrRestorable } from "#server/services/workspace/kept-files.ts";

/** `<word>` of a proposal with what is kept under it: builds, their locks, and how they stand. */
const OF_PROPOSAL = /^([a-z0-9-]+--[0-9a-f]{12})(-[0-9a-f]{16}(\.\w+)*|\.json)?$/;
/** Made while something is being made, and left behind by what was killed. */
const LEFT_BEHIND = /^\.(locking|laying|going|run)-/;
const LEFT_AFTER_MS = 3_600_000;

/**
 * Of use is what waits for its check or for an admin, what is approved, and what a workspace has that is not deleted,
 * whether it runs or not. Called by the one broker that also builds, between two checks.
 */
export async function sweepBuilds(db: Database, stateDir: string): Promise<void> {
  const running = await usedEnvironments(stateDir);
  if (running === undefined) return;
  const words = await wordsOfUse(db);
  const inUse = (word: string) => words.has(word) || running.some((folder) => folder.startsWith(`${word}-`));
  for (const parent of ["environments", "definitions", "proposals"].map((name) => path.join(stateDir, name))) {
    for (const name of await readdir(parent).catch(() => [])) {
      const word = OF_PROPOSAL.exec(name)?.[1];
      if (word !== undefined && !inUse(word)) await discard(parent, name);
      if (LEFT_BEHIND.test(name) && (await age(path.join(parent, name))) > LEFT_AFTER_MS)
        await remove(path.join(parent, name));
    }
  }
}

async function wordsOfUse(db: Database): Promise<Set<string>> {
  const had = db
    .select({ id: workspaces.id })
    .from(workspaces)
    .where(and(eq(workspaces.imageVersionId, imageVersions.id), isThereOrRestorable()));
  const undecided = and(
    ne(imageVersions.state, "retired"),
    inArray(imageVersions.check, ["waiting", "running", "passed"]),
  );
  const rows = await db
    .select({ word: imageVersions.definition })
    .from(imageVersions)
    .where(and(isNotNull(imageVersions.definition), or(undecided, exists(had))));
  return new Set(rows.flatMap(({ word }) => word ?? []));
}

/** Out of everybody's way first: half a build is none. */
async function discard(parent: string, name: string): Promise<void> {
  const going = path.join(parent, `.going-${name}`);
  await remove(going);
  await rename(path.join(parent, name), going);
  await remove(going);
}

async function age(file: string): Promise<number> {
  return Date.now() - (await stat(file)).mtimeMs;
}
