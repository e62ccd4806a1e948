/** Container images without a registry and without a container engine: layers as tar files, an archive around them. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** One part of a layer: what lies in `from` on this machine lies at `to` in the image. */
export type Part = { from: string; to: string; without?: string[] };

export type ImageConfig = { entrypoint?: string[]; env?: Record<string, string>; user?: string };

/** Writes a layer with everything owned by root. */
export async function writeLayer(file: string, parts: readonly Part[]): Promise<void> {
  const unfinished = `${file}.${process.pid}`;
  await rm(unfinished, { force: true });
  for (const { from, to, without = [] } of parts) {
    const excluded = without.map((pattern) => `--exclude=${pattern}`);
    // Names are moved; what links point to stays as it is (S).
    const moved = to === "/" ? [] : [`--transform=s,^\\.,${to.slice(1)},S`];
    const owner = ["--owner=0", "--group=0", "--numeric-owner"];
    await execute(
      "tar",
      ["--append", "--file", unfinished, ...owner, ...excluded, ...moved, "--one-file-system", "-C", from, "."],
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
