/** What the workspaces of tests run in. */
import { buildWheel } from "#scripts/start/builds.ts";
import { ensureEnvironment } from "#server/launchers/local/environment.ts";

/** Builds the wheel and the environment CUDA Python into a folder that installations take over. */
export async function buildEnvironment(root: string, out: string, onLine: (line: string) => void): Promise<void> {
  const wheel = await buildWheel(root, out, onLine);
  await ensureEnvironment("cuda-python", { stateDir: out, wheel, onLine });
}
