import { and, eq, isNotNull, ne, or } from "drizzle-orm";
import type { Database } from "#server/db/client.ts";
import { images, imageVersions } from "#server/db/schema/index.ts";
import { launcherFor } from "#server/launchers/choice.ts";
import { environmentState } from "#server/launchers/local/environment.ts";
import { readPackages } from "#server/launchers/local/packages.ts";
import { notify } from "#server/live.ts";

/**
 * Copies into the catalogue how far the local launcher's environments are built and what they hold, for pages. What another
 * launcher runs comes as an image and is ready as it is.
 */
export async function recordBuilds(db: Database, stateDir: string): Promise<void> {
  const versions = await db
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
  for (const version of versions) {
    const isLocal = launcherFor(version.name) === "local";
    const word = version.definition ?? version.name;
    const built = isLocal ? await environmentState(stateDir, word) : ({ state: "ready" } as const);
    const buildMessage = built.state === "failed" ? built.message : null;
    const hash = "hash" in built ? built.hash : null;
    const isNew = hash !== null && hash !== version.builtHash;
    if (!isNew && built.state === version.buildState && buildMessage === version.buildMessage) continue;
    const inside = isNew ? { builtHash: hash, packages: await readPackages(stateDir, word, hash) } : {};
    await db.transaction(async (tx) => {
      await tx
        .update(imageVersions)
        .set({ buildState: built.state, buildMessage, builtAt: built.state === "ready" ? new Date() : null, ...inside })
        .where(and(eq(imageVersions.id, version.id)));
      await notify(tx, "setup", version.id);
    });
  }
}
