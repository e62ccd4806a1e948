/** Programs that tests run on the cluster's node, compiled from Go sources of this folder and published modules. */
import { existsSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import path from "node:path";
import { cacheFolder } from "#scripts/lib/cache.ts";
import { fingerprint } from "#scripts/lib/fingerprint.ts";
import { run } from "#scripts/lib/processes.ts";

/** `policies` enforces NetworkPolicies, `buckets` is a storage driver. */
type Name = "policies" | "buckets";

const sourceOf = (name: Name) => path.join("scripts", "cluster", name);

/** Where a program lies once it is built. */
export async function goProgram(root: string, name: Name): Promise<string> {
  return path.join(cacheFolder(`${name}-${(await fingerprint(root, [sourceOf(name)])).slice(0, 16)}`), name);
}

/** Compiles it if it is missing. Needs the module proxy, which the node's network does not reach. */
export async function buildGoProgram(root: string, name: Name, say: (line: string) => void): Promise<void> {
  const program = await goProgram(root, name);
  if (existsSync(program)) return;
  say(`Building ${name} from Go modules`);
  await mkdir(path.dirname(program), { recursive: true });
  const unfinished = `${program}.${process.pid}`;
  await run("go", ["build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o", unfinished, "."], {
    cwd: path.join(root, sourceOf(name)),
    env: { ...process.env, CGO_ENABLED: "0", GOFLAGS: "" },
    background: true,
  });
  await rename(unfinished, program);
}
