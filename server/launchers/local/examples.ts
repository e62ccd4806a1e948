/** The examples in a new home: those that its environment can run. */
import { existsSync } from "node:fs";
import { cp, mkdir } from "node:fs/promises";
import path from "node:path";
import type { BuiltEnvironment } from "./environment.ts";

/** Where they lie. */
export const EXAMPLES = path.resolve(import.meta.dirname, "..", "..", "..", "examples");

/** What each imports beside Python's own modules. */
export const IMPORTS: Record<string, readonly string[]> = {
  "driver-alone.ipynb": [],
  "kmeans-digits.ipynb": ["matplotlib", "numba", "numpy", "sklearn"],
  "mandelbrot.ipynb": ["matplotlib", "numba", "numpy"],
  "matmul-shared.ipynb": ["numba", "numpy"],
  "reduction-atomics.ipynb": ["numba", "numpy"],
  "script.py": ["numba", "numpy"],
};

/** Writes those into a new folder whose imports the environment has; at least the one that imports none. */
export async function writeExamples(
  folder: string,
  { path: root, pythonVersion }: Pick<BuiltEnvironment, "path" | "pythonVersion">,
): Promise<void> {
  const packages = path.join(root, "lib", `python${pythonVersion}`, "site-packages");
  await mkdir(folder, { mode: 0o755 });
  for (const [name, imports] of Object.entries(IMPORTS)) {
    if (!imports.every((one) => existsSync(path.join(packages, one)))) continue;
    await cp(path.join(EXAMPLES, name), path.join(folder, name), { force: false });
  }
}
