/** Container images without a registry and without a container engine: layers as tar files, an archive around them. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { chmod, copyFile, link, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import type { Base } from "#scripts/images/base.ts";
import { bill, type Component, debianPackages } from "#scripts/images/bill.ts";
import { DEBIAN_PACKAGES, type ImageConfig, readContainerfile } from "#scripts/images/containerfile.ts";
import { findOrMake } from "#scripts/images/kept.ts";
import { fingerprint } from "#scripts/lib/fingerprint.ts";

const execute = promisify(execFile);

/** One part of a layer: what lies in `from` on this machine (all of it, or `only` these names) lies at `to` in the image. */
export type Part = { from: string; to: string; only?: string[]; without?: string[] };

/** An image as a file, with its bill of materials; its tag is the hash of its content. */
export type Image = { name: string; file: string; bill: string };

/** What an image is made of: its Containerfile's layers, of which the last is what `stage` writes and `parts` of this machine. */
export type Recipe = {
  root: string;
  /** The folder of its Containerfile: `gpud`. */
  word: string;
  /** Of the images of one Containerfile, which this is, with what that is told. */
  variant?: { name: string; arguments: Record<string, string>; env: Record<string, string> };
  /** Hash of its own content; `makeImage` adds base, lower layers and the programs that make images. */
  tag: string;
  /** Layers below the last one, by their names in the Containerfile. */
  layers?: Readonly<Record<string, string>>;
  stage: (root: string) => Promise<void>;
  parts?: readonly Part[];
  /** The packages in it, the base's excepted. */
  packages: () => Promise<Component[]>;
};

/** The last layer of a Containerfile. */
const LAST_LAYER = "root.tar";

/** What an image is named by: `workspace-jax`. */
const wordsOf = ({ word, variant }: Recipe) => (variant === undefined ? word : `${word}-${variant.name}`);

/** Makes an image unless one with the same content was made before. */
export async function makeImage(content: Recipe, base: Base, say: (line: string) => void): Promise<Image> {
  const lower = Object.values(content.layers ?? {}).map((layer) => path.basename(layer));
  const programs = await fingerprint(content.root, ["scripts/images"]);
  const recipe = { ...content, tag: tagOf(content.tag, base.tag, ...lower, programs, process.arch) };
  const kind = wordsOf(recipe);
  const name = `localhost/sluice-${kind}:${recipe.tag}`;
  const kept = { kind, tag: recipe.tag, endings: [".tar", ".cdx.json"] as const };
  const [file, document] = await findOrMake(kept, say, async (...places) => {
    say(`Making the image ${name}`);
    await writeImage(recipe, base, { name, file: places[0], bill: places[1] });
  });
  return { name, file, bill: document };
}

async function writeImage(recipe: Recipe, base: Base, image: Image): Promise<void> {
  const { root, word, variant, tag, layers = {} } = recipe;
  const layer = `${image.file}.layer`;
  const digest = `sha256:${await sha256(base.layer)}`;
  const told = { VERSION: tag, BASE_NAME: base.name, BASE_DIGEST: digest, ...variant?.arguments };
  const { config, layers: wanted } = await readContainerfile(root, word, told);
  const given: Record<string, string> = { ...layers, [LAST_LAYER]: layer };
  const files = wanted.flatMap((one) => given[one] ?? []);
  if (files.length !== Object.keys(given).length || files.length !== wanted.length)
    throw new Error(
      `The Containerfile of ${word} adds ${wanted.join(", ")}, and there is ${Object.keys(given).join(", ")}.`,
    );
  try {
    await writeLastLayer(recipe, layer);
    const packages = [...(await debianPackages(base.tree)), ...(await recipe.packages())];
    await writeFile(image.bill, bill({ name: `sluice-${wordsOf(recipe)}`, version: tag }, packages));
    const env = { ...config.env, ...variant?.env };
    await writeArchive(image.file, image.name, [base.layer, ...files], { ...config, env });
  } finally {
    await rm(layer, { force: true });
  }
}

/**
 * Writes what docker or buildah builds the same image from, upon the base that the Containerfile names: `folder` holds
 * Containerfile and layers, and a bill of what the layers bring. Gives the arguments of the build.
 */
export async function writeContext(recipe: Recipe, folder: string): Promise<string[]> {
  const { root, word, variant, tag, layers = {} } = recipe;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const told = { VERSION: tag, ...variant?.arguments };
  const { text } = await readContainerfile(root, word, told);
  const env = Object.entries(variant?.env ?? {}).map(([key, value]) => `ENV ${key}="${value}"\n`);
  await writeFile(path.join(folder, "Containerfile"), text + env.join(""));
  await copyFile(path.join(root, DEBIAN_PACKAGES), path.join(folder, path.basename(DEBIAN_PACKAGES)));
  for (const [name, layer] of Object.entries(layers)) await copyFile(layer, path.join(folder, name));
  await writeLastLayer(recipe, path.join(folder, LAST_LAYER));
  await writeFile(
    path.join(folder, "layers.cdx.json"),
    bill({ name: `sluice-${wordsOf(recipe)}`, version: tag }, await recipe.packages()),
  );
  return Object.entries(told).flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]);
}

async function writeLastLayer({ stage, parts = [] }: Recipe, file: string): Promise<void> {
  const staged = await mkdtemp(path.join(tmpdir(), "sluice-image-"));
  try {
    await chmod(staged, 0o755);
    await stage(staged);
    await writeLayer(file, [{ from: staged, to: "/" }, ...parts]);
  } finally {
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
  config: Partial<ImageConfig>,
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
