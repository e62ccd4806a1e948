/** For tests and benchmarks: a state directory of their own that shares the built environments of this checkout. */
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { ensureEnvironment } from "./environment.ts";
import { builtWheel } from "./wheel.ts";
import { removeFiles, workspacePaths } from "./workspace-files.ts";

export type TestState = { stateDir: string; environment: string; drop: () => Promise<void> };

/** Building is slow, so what was built for this checkout is used, and what is missing is built there. */
export async function makeTestState(onLine: (line: string) => void = () => undefined): Promise<TestState> {
  const checkout = path.resolve(import.meta.dirname, "..", "..", "..", ".sluice", "test");
  await mkdir(checkout, { recursive: true, mode: 0o700 });
  const wheel = process.env.SLUICE_WHEEL ?? (await builtWheel(checkout));
  const built = await ensureEnvironment("cuda-python", { stateDir: checkout, wheel, onLine });
  const stateDir = await mkdtemp(path.join(tmpdir(), "sluice-state-"));
  const environments = path.join(stateDir, "environments");
  await mkdir(environments, { mode: 0o700 });
  await mkdir(path.join(stateDir, "workspaces"), { mode: 0o700 });
  await symlink(built.path, path.join(environments, path.basename(built.path)));
  await writeFile(path.join(environments, "cuda-python.json"), JSON.stringify({ state: "ready", hash: built.hash }));
  return {
    stateDir,
    environment: built.path,
    drop: async () => {
      for (const id of await readdir(path.join(stateDir, "workspaces")))
        await removeFiles(workspacePaths(stateDir, id));
      await rm(stateDir, { recursive: true, force: true });
    },
  };
}
