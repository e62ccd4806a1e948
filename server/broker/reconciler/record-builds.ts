import { and, eq, isNotNull, ne, or } from "drizzle-orm";
import type { Database } from "#server/db/client.ts";
import { images, imageVersions } from "#server/db/schema/index.ts";
import { isAway } from "#server/errors.ts";
import { launcherFor } from "#server/launchers/choice.ts";
import { environmentState } from "#server/launchers/local/environment.ts";
import { readPackages } from "#server/launchers/local/packages.ts";
import { notify } from "#server/live.ts";
import type { Logger } from "#server/log.ts";

/**
 * Copies into the catalogue how far the local launcher's environments are built and what they hold, for pages. What another
 * launcher runs comes as an image and is ready as it is. A version that cannot be recorded, such as a hostile proposal,
 * holds up no other and no workspace.
 */
export async function recordBuilds(db: Database, stateDir: string, log: Logger): Promise<void> {
  for (const version of await versionsOf(db)) {
    try {
      await recordBuild(db, stateDir, version);
    } catch (error) {
      if (isAway(error)) throw error;
      log.warn({ err: error, versionId: version.id }, "a build could not be recorded");
    }
  }
}

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
  const inside = isNew ? { builtHash: hash, packages: await readPackages(stateDir, word, hash) } : {};
  await db.transaction(async (tx) => {
    await tx
      .update(imageVersions)
      .set({ buildState: built.state, buildMessage, builtAt: built.state === "ready" ? new Date() : null, ...inside })
      .where(and(eq(imageVersions.id, version.id)));
    await notify(tx, "setup", version.id);
  });
}
