/** Container images without a registry and without a container engine: layers as tar files, an archive around them. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** One part of a layer: what lies in `from` on this machine (all of it, or `only` these names) lies at `to` in the image. */
export type Part = { from: string; to: string; only?: string[]; without?: string[] };

export type ImageConfig = { entrypoint?: string[]; env?: Record<string, string>; user?: string; folder?: string };

/** An image as a file; its tag is the hash of its content. */
export type Image = { name: string; file: string };

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
