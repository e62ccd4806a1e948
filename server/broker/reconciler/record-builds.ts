import path from "node:path";
import { and, eq, isNotNull, ne, or } from "drizzle-orm";
import type { PackageView } from "#server/contracts/image.ts";
import type { Database } from "#server/db/client.ts";
import { images, imageVersions } from "#server/db/schema/index.ts";
import { isAway } from "#server/errors.ts";
import { launcherFor } from "#server/launchers/choice.ts";
import { environmentState, readBuilt } from "#server/launchers/local/environment.ts";
import { readPackages } from "#server/launchers/local/packages.ts";
import { notify } from "#server/live.ts";
import type { Logger } from "#server/log.ts";

/**
 * Copies into the catalog how far the local launcher's environments are built and what they hold, for pages. What another
 * launcher runs comes as an image and is ready as it is. A version that cannot be recorded, such as a hostile proposal,
 * holds up no other and no workspace.
 */
export async function recordBuilds(db: Database, stateDir: string, log: Logger): Promise<void> {
  for (const version of await versionsOf(db)) {
    const failed = failedAt.get(version.id);
    if (failed !== undefined && performance.now() - failed < AGAIN_MS) continue;
    try {
      await recordBuild(db, stateDir, version);
      failedAt.delete(version.id);
    } catch (error) {
      if (isAway(error)) throw error;
      failedAt.set(version.id, performance.now());
      log.warn({ err: error, versionId: version.id }, "a build could not be recorded");
    }
  }
}

/** When versions that could not be recorded failed: to read one again at each round would take the round's time. */
const failedAt = new Map<string, number>();
const AGAIN_MS = 600_000;

type Version = Awaited<ReturnType<typeof versionsOf>>[number];

async function versionsOf(db: Database) {
  return await db
    .select({
      id: imageVersions.id,
      name: images.name,
      definition: imageVersions.definition,
      buildState: imageVersions.buildState,
      buildMessage: imageVersions.buildMessage,
      builtHash: imageVersions.builtHash,
    })
    .from(imageVersions)
    .innerJoin(images, eq(images.id, imageVersions.imageId))
    .where(
      or(
        eq(imageVersions.state, "approved"),
        and(isNotNull(imageVersions.definition), ne(imageVersions.state, "retired")),
      ),
    );
}

async function recordBuild(db: Database, stateDir: string, version: Version): Promise<void> {
  const isLocal = launcherFor(version.name) === "local";
  const word = version.definition ?? version.name;
  const built = isLocal ? await environmentState(stateDir, word) : ({ state: "ready" } as const);
  // Lines of an installer may hold any character.
  const buildMessage = built.state === "failed" ? built.message.replaceAll("\0", "") : null;
  const hash = "hash" in built ? built.hash : null;
  const isNew = hash !== null && hash !== version.builtHash;
  if (!isNew && built.state === version.buildState && buildMessage === version.buildMessage) return;
  const inside = isNew ? { builtHash: hash, packages: await packagesOf(stateDir, word, hash) } : {};
  await db.transaction(async (tx) => {
    await tx
      .update(imageVersions)
      .set({ buildState: built.state, buildMessage, builtAt: built.state === "ready" ? new Date() : null, ...inside })
      .where(and(eq(imageVersions.id, version.id)));
    await notify(tx, "setup", version.id);
  });
}

async function packagesOf(stateDir: string, name: string, hash: string): Promise<PackageView[]> {
  const { path: folder, pythonVersion } = await readBuilt(path.join(stateDir, "environments", `${name}-${hash}`));
  return await readPackages(folder, pythonVersion);
}
