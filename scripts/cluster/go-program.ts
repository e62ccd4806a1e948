/** Programs of the tests that are compiled from Go modules, each kept by the hash of everything that decides its content. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import path from "node:path";
import { cacheFolder } from "#scripts/lib/cache.mjs";
import { fingerprint } from "#scripts/lib/fingerprint.ts";
import { run } from "#scripts/lib/processes.ts";

/** `policies` enforces NetworkPolicies, `buckets` is a storage driver. */
type Name = "policies" | "buckets";

const FLAGS = ["-trimpath", "-ldflags=-s -w"];

/** Environment of every Go build, so that no setting of the machine changes the programs. */
export const goEnv = () => ({ ...process.env, CGO_ENABLED: "0", GOFLAGS: "" });

let toolchain: string | undefined;

/** The Go version that builds, as `go env` tells it; empty without Go, where only programs that are built can be found. */
function goVersion(): string {
  toolchain ??= spawnSync("go", ["env", "GOVERSION"], { encoding: "utf8" }).stdout?.trim() ?? "";
  return toolchain;
}

/** Hash of what decides a Go build beside its modules: toolchain, processor, flags, and the contents of these files. */
export function goBuildKey(flags: readonly string[], files: readonly string[] = []): string {
  const hash = createHash("sha256");
  for (const part of [goVersion(), process.arch, ...flags]) hash.update(part).update("\0");
  for (const file of files) hash.update(readFileSync(file)).update("\0");
  return hash.digest("hex").slice(0, 16);
}

/**
 * Installs `module/command@version` and gives its path. The checksum database of Go holds the content to the version.
 */
export async function installGoCommand(
  name: string,
  { module, version }: { module: string; version: string },
  say: (line: string) => void,
): Promise<string> {
  const folder = cacheFolder(`${name}-${version}-${goBuildKey(FLAGS)}`);
  const program = path.join(folder, name);
  if (existsSync(program)) return program;
  say(`Building ${name} ${version} from its Go module`);
  await mkdir(folder, { recursive: true });
  const unfinished = await mkdtemp(`${program}.`);
  try {
    const env = { ...goEnv(), GOBIN: unfinished };
    await run("go", ["install", ...FLAGS, `${module}@${version}`], { cwd: folder, env, background: true });
    await rename(path.join(unfinished, name), program);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return program;
}

const sourceOf = (name: Name) => path.join("scripts", "cluster", name);

/** Where a program lies once it is built. */
export async function goProgram(root: string, name: Name): Promise<string> {
  const source = (await fingerprint(root, [sourceOf(name)])).slice(0, 16);
  return path.join(cacheFolder(`${name}-${source}-${goBuildKey(FLAGS)}`), name);
}

/** Compiles it if it is missing. Needs the module proxy, which the node's network does not reach. */
export async function buildGoProgram(root: string, name: Name, say: (line: string) => void): Promise<void> {
  const program = await goProgram(root, name);
  if (existsSync(program)) return;
  say(`Building ${name} from Go modules`);
  await mkdir(path.dirname(program), { recursive: true });
  const unfinished = `${program}.${process.pid}`;
  await run("go", ["build", "-mod=readonly", ...FLAGS, "-o", unfinished, "."], {
    cwd: path.join(root, sourceOf(name)),
    env: goEnv(),
    background: true,
  });
  await rename(unfinished, program);
}
