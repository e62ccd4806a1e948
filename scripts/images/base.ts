/** A small Debian, the release of this machine, as the first layer of every image. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile, rename, rm } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { tagOf, writeLayer } from "#scripts/images/archive.ts";
import { DEBIAN_PACKAGES } from "#scripts/images/containerfile.ts";
import { findOrMake } from "#scripts/images/kept.ts";
import { run } from "#scripts/lib/processes.ts";

/** Raised when the way of packing changes. */
const RECIPE = "2";

/** The first layer's file, the tree that it was packed from, its tag, and what it is called where a registry's name would stand. */
export type Base = { layer: string; tree: string; tag: string; name: string };

/** Made once for all checkouts that install the same in it. */
export async function baseLayer(root: string, say: (line: string) => void): Promise<Base> {
  const release = /^VERSION_CODENAME=(\w+)$/m.exec(await readFile("/etc/os-release", "utf8"))?.[1];
  if (release === undefined) throw new Error("/etc/os-release names no release.");
  const packages = (await readFile(path.join(root, DEBIAN_PACKAGES), "utf8")).trim();
  // What the mirror has at that time is not in the tag: packages get newer only with another tag or another month.
  const tag = tagOf(RECIPE, packages, process.arch);
  const kept = { kind: `debian-${release}`, tag, endings: ["", ".tar"] as const };
  const [tree, layer] = await findOrMake(kept, say, async (tree, layer) => {
    if (!existsSync(tree)) {
      say(`Installing a small Debian ${release} as the base of the images`);
      const unfinished = `${tree}.${process.pid}`;
      await rm(unfinished, { recursive: true, force: true });
      await run("debootstrap", [
        "--variant=minbase",
        `--include=${packages.split("\n").join(",")}`,
        release,
        unfinished,
        ...(await mirror(release)),
      ]);
      await rename(unfinished, tree);
    }
    await writeLayer(layer, [
      {
        from: tree,
        to: "/",
        without: ["./var/cache/apt/*", "./var/lib/apt/lists/*", "./usr/share/doc/*", "./usr/share/man/*"],
      },
      { from: tree, to: "/", only: await licenceFiles(tree) },
    ]);
  });
  return { layer, tree, tag, name: `debootstrap/debian:${release}` };
}

/** What has to go with the programs: the packages' licences, of all their documents. */
async function licenceFiles(tree: string): Promise<string[]> {
  const entries = await readdir(path.join(tree, "usr/share/doc"), { withFileTypes: true });
  return entries
    .map((entry) => path.join("usr/share/doc", entry.name, entry.isDirectory() ? "copyright" : ""))
    .map((name) => name.replace(/\/$/, ""))
    .filter((name) => !name.endsWith("/copyright") || existsSync(path.join(tree, name)))
    .sort();
}

/** Where this machine gets its packages from. */
async function mirror(release: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)("apt-get", [
    "indextargets",
    "--format",
    "$(REPO_URI) $(RELEASE) $(COMPONENT)",
    "Created-By: Packages",
  ]);
  const line = stdout.split("\n").find((one) => one.endsWith(` ${release} main`));
  return line === undefined ? [] : [line.split(" ")[0] ?? ""];
}
