/** Container images without a registry and without a container engine: layers as tar files, an archive around them. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { chmod, link, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import type { Base } from "#scripts/images/base.ts";
import { bill, type Component, debianPackages } from "#scripts/images/bill.ts";
import { cacheFolder } from "#scripts/lib/cache.ts";

const execute = promisify(execFile);

/** One part of a layer: what lies in `from` on this machine (all of it, or `only` these names) lies at `to` in the image. */
export type Part = { from: string; to: string; only?: string[]; without?: string[] };

export type ImageConfig = {
  entrypoint?: string[];
  env?: Record<string, string>;
  user?: string;
  folder?: string;
  labels?: Record<string, string>;
};

/** An image as a file, with its bill of materials; its tag is the hash of its content. */
export type Image = { name: string; file: string; bill: string };

/** What an image is made of: upon a base and `layers`, what `stage` writes, and `parts` of this machine. */
export type Recipe = {
  /** What it holds, in a word: `gpud`. */
  word: string;
  /** Hash of everything that goes into it. */
  tag: string;
  base: Base;
  layers?: readonly string[];
  stage: (root: string) => Promise<void>;
  parts?: readonly Part[];
  config: ImageConfig;
  /** The packages in it, the base's excepted. */
  packages: () => Promise<Component[]>;
};

/** Makes an image unless that was done for the same tag. */
export async function makeImage(recipe: Recipe, say: (line: string) => void): Promise<Image> {
  const { word, tag, base, layers = [], stage, parts = [], config } = recipe;
  const name = `localhost/sluice-${word}:${tag}`;
  const file = path.join(cacheFolder("images"), `${word}-${tag}.tar`);
  const image = { name, file, bill: path.join(cacheFolder("images"), `${word}-${tag}.cdx.json`) };
  if (existsSync(file) && existsSync(image.bill)) return image;
  say(`Making the image ${name}`);
  const staged = await mkdtemp(path.join(tmpdir(), "sluice-image-"));
  const layer = `${file}.layer`;
  try {
    await chmod(staged, 0o755);
    await stage(staged);
    await writeLayer(layer, [{ from: staged, to: "/" }, ...parts]);
    const packages = [...(await debianPackages(base.tree)), ...(await recipe.packages())];
    await writeFile(image.bill, bill({ name: `sluice-${word}`, version: tag }, packages));
    const labels = {
      "org.opencontainers.image.title": `Sluice: ${word}`,
      "org.opencontainers.image.version": tag,
      "org.opencontainers.image.licenses": "Apache-2.0",
      "org.opencontainers.image.base.digest": `sha256:${await sha256(base.layer)}`,
    };
    await writeArchive(file, name, [base.layer, ...layers, layer], { ...config, labels });
    return image;
  } finally {
    await rm(layer, { force: true });
    await rm(staged, { recursive: true, force: true });
  }
}

/** The tag of what `parts` say. */
export function tagOf(...parts: readonly (string | Buffer)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part).update("\0");
  return hash.digest("hex").slice(0, 16);
}

/** Puts a container's users in place of those of the machine that built its base. */
export async function writeUsers(root: string, ...users: readonly { name: string; id: number; home: string }[]) {
  const folder = path.join(root, "etc");
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const lines = users.map(({ name, id, home }) => `${name}:x:${id}:${id}::${home}:/bin/bash\n`).join("");
  const groups = users.map(({ name, id }) => `${name}:x:${id}:\n`).join("");
  await writeFile(
    path.join(folder, "passwd"),
    `root:x:0:0:root:/root:/bin/bash\n${lines}nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n`,
  );
  await writeFile(path.join(folder, "group"), `root:x:0:\n${groups}nogroup:x:65534:\n`);
}

/** Writes a layer with everything owned by root. */
export async function writeLayer(file: string, parts: readonly Part[]): Promise<void> {
  const unfinished = `${file}.${process.pid}`;
  await rm(unfinished, { force: true });
  for (const { from, to, only = ["."], without = [] } of parts) {
    const names = only.map((name) => (name === "." ? name : `./${name}`));
    const excluded = without.map((pattern) => `--exclude=${pattern}`);
    // Names are moved; what links point to stays as it is (S).
    const moved = to === "/" ? [] : [`--transform=s,^\\.,${to.slice(1)},S`];
    const owner = ["--owner=0", "--group=0", "--numeric-owner"];
    await execute(
      "tar",
      ["--append", "--file", unfinished, ...owner, ...excluded, ...moved, "--one-file-system", "-C", from, ...names],
      { maxBuffer: 1 << 24 },
    );
  }
  await rename(unfinished, file);
}

/** Writes `file`, which `ctr images import`, `docker load` and `podman load` take. */
export async function writeArchive(
  file: string,
  name: string,
  layers: readonly string[],
  config: ImageConfig,
): Promise<void> {
  const folder = await mkdtemp(`${file}.`);
  try {
    const digests = await Promise.all(layers.map(sha256));
    for (const [index, layer] of layers.entries()) await link(layer, path.join(folder, `layer-${index}.tar`));
    const made = {
      architecture: process.arch === "arm64" ? "arm64" : "amd64",
      os: "linux",
      config: {
        Entrypoint: config.entrypoint ?? null,
        User: config.user ?? "",
        WorkingDir: config.folder ?? "/",
        Labels: config.labels ?? {},
        Env: Object.entries(config.env ?? {}).map(([key, value]) => `${key}=${value}`),
      },
      rootfs: { type: "layers", diff_ids: digests.map((digest) => `sha256:${digest}`) },
    };
    const names = layers.map((_, index) => `layer-${index}.tar`);
    await writeFile(path.join(folder, "config.json"), JSON.stringify(made));
    await writeFile(
      path.join(folder, "manifest.json"),
      JSON.stringify([{ Config: "config.json", RepoTags: [name], Layers: names }]),
    );
    await execute("tar", ["--create", "--file", `${file}.new`, "-C", folder, "manifest.json", "config.json", ...names]);
    await rename(`${file}.new`, file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function sha256(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), hash);
  return hash.digest("hex");
}
