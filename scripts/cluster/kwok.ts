/** kwok, which imitates nodes for the cluster's bench, compiled from its published module. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { cacheFolder } from "#scripts/lib/cache.ts";
import { run } from "#scripts/lib/processes.ts";

const MODULE = "sigs.k8s.io/kwok";
const VERSION = "v0.8.0";
/** How its nodes and pods come to be ready at once, in the module's own files. */
const STAGES = ["kustomize/stage/node/fast", "kustomize/stage/pod/fast"];

export type Kwok = { program: string; stages: string };

/** Compiles it if it is missing (three minutes on two cores). */
export async function buildKwok(say: (line: string) => void): Promise<Kwok> {
  const folder = cacheFolder(`kwok-${VERSION}`);
  const found = { program: path.join(folder, "kwok"), stages: path.join(folder, "stages.yaml") };
  if (existsSync(found.program) && existsSync(found.stages)) return found;
  say(`Building kwok ${VERSION} from its Go module`);
  await mkdir(folder, { recursive: true });
  const env = { ...process.env, CGO_ENABLED: "0", GOFLAGS: "", GOBIN: folder };
  const install = ["install", "-trimpath", "-ldflags=-s -w", `${MODULE}/cmd/kwok@${VERSION}`];
  await run("go", install, { cwd: folder, env, background: true });
  const told = execFileSync("go", ["mod", "download", "-json", `${MODULE}@${VERSION}`], { cwd: folder, env });
  const { Dir } = JSON.parse(told.toString()) as { Dir: string };
  const files = STAGES.flatMap((stage) =>
    readdirSync(path.join(Dir, stage))
      .filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml")
      .sort()
      .map((name) => readFileSync(path.join(Dir, stage, name), "utf8")),
  );
  await writeFile(found.stages, files.map((text) => `---\n${text}\n`).join(""));
  return found;
}
