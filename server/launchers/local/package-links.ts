/**
 * Files of Sluice in an environment whose packages may be hostile. A package can lay a link in the place of a folder, and
 * the installation would then read, write or delete outside the environment with its own rights.
 */
import { lstat, mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";

/** Caches that packages would write into a new home at their first import. Each home begins with a copy. */
export const cachesOf = (environment: string): string => path.join(environment, "share", "sluice", "cache");

/** Removes what a package has put where the caches belong: each start of a workspace copies the caches. */
export async function removeCaches(environment: string): Promise<void> {
  const caches = cachesOf(environment);
  await refuseLinks(environment, path.dirname(caches), "Sluice's caches");
  // Removes a link itself, and not the folder behind the link.
  await rm(caches, { recursive: true, force: true });
}

/** Writes the settings that JupyterLab starts with. */
export async function writeLabSettings(environment: string, content: string | Buffer): Promise<void> {
  const folder = path.join(environment, "share", "jupyter", "lab", "settings");
  await refuseLinks(environment, folder, "JupyterLab's settings");
  await mkdir(folder, { recursive: true });
  await replaceFile(path.join(folder, "overrides.json"), content);
}

/** Writes a file, never through a link that a package has laid in its place. */
export async function replaceFile(file: string, content: string | Buffer): Promise<void> {
  await rm(file, { recursive: true, force: true });
  await writeFile(file, content, { flag: "wx" });
}

/**
 * Throws if a folder on the way from the environment to `inner` is a link, also one that leads nowhere yet. Call only
 * when no program of a package runs.
 */
async function refuseLinks(environment: string, inner: string, what: string): Promise<void> {
  let at = environment;
  for (const part of path.relative(environment, inner).split(path.sep)) {
    at = path.join(at, part);
    const found = await lstat(at).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
    if (found === undefined) return;
    if (found.isSymbolicLink()) {
      const name = path.relative(environment, at);
      throw new Error(`A package has laid the link ${name} where ${what} belong. Propose the environment without it.`);
    }
  }
}
