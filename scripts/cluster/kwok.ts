/** kwok, which imitates nodes for the cluster's bench, compiled from its published module. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { goEnv, installGoCommand } from "#scripts/cluster/go-program.ts";
import { tagOf } from "#scripts/images/archive.ts";

const MODULE = "sigs.k8s.io/kwok";
const VERSION = "v0.8.0";
/** How its nodes and pods come to be ready at once, in the module's own files. */
const STAGES = ["kustomize/stage/node/fast", "kustomize/stage/pod/fast"];

export type Kwok = { program: string; stages: string };

/** Compiles it if it is missing (three minutes on two cores). */
export async function buildKwok(say: (line: string) => void): Promise<Kwok> {
  const program = await installGoCommand("kwok", { module: `${MODULE}/cmd/kwok`, version: VERSION }, say);
  const folder = path.dirname(program);
  const found = { program, stages: path.join(folder, `stages-${tagOf(...STAGES)}.yaml`) };
  if (existsSync(found.stages)) return found;
  const download = ["mod", "download", "-json", `${MODULE}@${VERSION}`];
  const told = execFileSync("go", download, { cwd: folder, env: goEnv() });
  const { Dir } = JSON.parse(told.toString()) as { Dir: string };
  const files = STAGES.flatMap((stage) =>
    readdirSync(path.join(Dir, stage))
      .filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml")
      .sort()
      .map((name) => readFileSync(path.join(Dir, stage, name), "utf8")),
  );
  const unfinished = `${found.stages}.${process.pid}`;
  await writeFile(unfinished, files.map((text) => `---\n${text}\n`).join(""));
  await rename(unfinished, found.stages);
  return found;
}
