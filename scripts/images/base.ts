/** A small Debian, the release of this machine, as the first layer of every image. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { writeLayer } from "#scripts/images/archive.ts";
import { cacheFolder } from "#scripts/lib/cache.ts";
import { run } from "#scripts/lib/processes.ts";

/** What Python's own modules and the environments' libraries link to, and what people miss first in a terminal. */
const PACKAGES = [
  "ca-certificates",
  "libbz2-1.0",
  "libexpat1",
  "libffi8",
  "libgomp1",
  "liblzma5",
  "libncursesw6",
  "libnsl2",
  "libreadline8",
  "libsqlite3-0",
  "libssl3",
  "libstdc++6",
  "libuuid1",
  "procps",
];

/** The first layer's file, and the tree that it was packed from. */
export type Base = { layer: string; tree: string };

/** Made once for all checkouts. */
export async function baseLayer(say: (line: string) => void): Promise<Base> {
  const release = /^VERSION_CODENAME=(\w+)$/m.exec(await readFile("/etc/os-release", "utf8"))?.[1];
  if (release === undefined) throw new Error("/etc/os-release names no release.");
  const folder = cacheFolder("images");
  const layer = path.join(folder, `debian-${release}.tar`);
  const tree = path.join(folder, `debian-${release}`);
  if (existsSync(layer) && existsSync(tree)) return { layer, tree };
  await mkdir(folder, { recursive: true });
  if (!existsSync(tree)) {
    say(`Installing a small Debian ${release} as the base of the images`);
    const unfinished = `${tree}.${process.pid}`;
    await rm(unfinished, { recursive: true, force: true });
    await run("debootstrap", [
      "--variant=minbase",
      `--include=${PACKAGES.join(",")}`,
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
  ]);
  return { layer, tree };
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
