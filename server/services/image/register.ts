import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { desc, eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  environmentFile,
  type LocalImageSpec,
  type RegisterImageInput,
  registerImageInput,
} from "#server/contracts/image.ts";
import { images, imageVersions } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { since } from "./order.ts";

const ROOT = "server/environments";

/**
 * Puts a definition that comes with Sluice into the catalogue. Its version is the hash of its files: the same
 * definition again changes nothing, a changed one becomes the newest version, and workspaces keep theirs. What an admin
 * has retired stays so with its next version.
 */
export async function register(ctx: Context, raw: RegisterImageInput): Promise<void> {
  authorize(ctx.principal, "image.register");
  const { folder } = parse(registerImageInput, raw);
  const definition = await readDefinition(folder);
  await inTransaction(ctx, async (tx) => {
    const now = tx.now();
    const text = { title: definition.title, description: definition.description };
    const [image] = await tx.db
      .insert(images)
      .values({ id: newId("img"), name: definition.name, ...text, createdAt: now })
      .onConflictDoUpdate({ target: images.name, set: text })
      .returning({ id: images.id });
    if (image === undefined) throw new SluiceError("internal", "The catalogue entry was not written.");
    const [before] = await tx.db
      .select({ state: imageVersions.state, retiredWith: imageVersions.retiredWith })
      .from(imageVersions)
      .where(eq(imageVersions.imageId, image.id))
      .orderBy(desc(since), desc(imageVersions.id))
      .limit(1);
    const [version] = await tx.db
      .insert(imageVersions)
      .values({
        id: newId("imv"),
        imageId: image.id,
        version: definition.version,
        ...(before?.state === "retired" ? before : { state: "approved" }),
        spec: definition.spec,
        buildState: "pending",
        createdAt: now,
      })
      .onConflictDoNothing()
      .returning({ id: imageVersions.id });
    if (version === undefined) return;
    await audit(tx, {
      action: "image.register",
      subject: image.id,
      detail: { name: definition.name, version: definition.version },
    });
    await notify(tx.db, "setup", image.id);
  });
}

/** The folders of all definitions that come with Sluice. */
export async function definitionFolders(): Promise<string[]> {
  const entries = await readdir(path.resolve(ROOT), { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
}

/** Definitions that others can begin with: what a recipe of ours makes, no lock names. */
export async function basesOfInstallation(): Promise<{ name: string; title: string }[]> {
  const files = (await definitionFolders()).map(async (folder) => {
    const text = await readFile(path.resolve(ROOT, folder, "environment.json"), "utf8");
    return parse(environmentFile, JSON.parse(text));
  });
  return (await Promise.all(files)).flatMap(({ name, title, build }) => (build === undefined ? [{ name, title }] : []));
}

async function readDefinition(folder: string) {
  const at = path.join(ROOT, folder);
  const absolute = path.resolve(at);
  const names = await readdir(absolute).catch(() => {
    throw new SluiceError("not-found", `There is no environment definition ${at}.`);
  });
  const hash = createHash("sha256");
  for (const name of names.sort()) {
    hash
      .update(`${name}\0`)
      .update(await readFile(path.join(absolute, name)))
      .update("\0");
  }
  const file = parse(environmentFile, JSON.parse(await readFile(path.join(absolute, "environment.json"), "utf8")));
  const needs = file.needs === undefined ? {} : { needs: file.needs };
  const spec: LocalImageSpec = { folder: at, env: file.env, ...needs };
  return { ...file, version: hash.digest("hex").slice(0, 12), spec };
}
