/** Helm as one program, compiled from its published module; kept outside the checkout for all of them. */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { cacheFolder } from "#scripts/lib/cache.ts";
import { run } from "#scripts/lib/processes.ts";

const VERSION = "v3.22.0";

/** Compiles it if it is missing (two minutes on two cores); gives the program's path. */
export async function buildHelm(say: (line: string) => void): Promise<string> {
  const folder = cacheFolder(`helm-${VERSION}`);
  const program = path.join(folder, "helm");
  if (existsSync(program)) return program;
  say(`Building Helm ${VERSION} from its Go module`);
  await mkdir(folder, { recursive: true });
  await run("go", ["install", "-trimpath", "-ldflags=-s -w", `helm.sh/helm/v3/cmd/helm@${VERSION}`], {
    cwd: folder,
    env: { ...process.env, CGO_ENABLED: "0", GOFLAGS: "", GOBIN: folder },
    background: true,
  });
  return program;
}
