/** What the conformance suites have found, short enough for a page: from what `npm run conformance -- SUITE --record` keeps. */
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { resultSchema, suiteSchema } from "#scripts/conformance/suite.ts";
import type { ConformanceRun } from "#server/contracts/conformance.ts";

const SUITES = path.join("native", "conformance", "suites");
/** Where the service reads it. */
export const CONFORMANCE = path.join("server", "services", "conformance", "runs.json");

/** What a person looks for of a suite: the package, which of its requirements that is, and what docs/conformance.md says does not work. */
const SHOWN: Record<string, { name: string; requirement?: string; note?: string }> = {
  cuda: { name: "CUDA C++", note: "Link the runtime as a shared library: nvcc --cudart=shared." },
  cupy: { name: "CuPy", note: "The environment's own build: the wheels of PyPI hold a static CUDA runtime." },
  jax: { name: "JAX", requirement: "jax", note: "Convolutions (cuDNN) and sparse solvers are refused by name." },
  "jax-0.11": { name: "JAX", requirement: "jax" },
  "jax-0.12": { name: "JAX", requirement: "jax" },
  numba: {
    ...{ name: "Numba", requirement: "numba-cuda[cu13]" },
    note: "Managed memory, mapped host memory and memory shared between processes are refused.",
  },
  own: { name: "Numba", requirement: "numba-cuda[cu13]" },
  tensorflow: {
    ...{ name: "TensorFlow", requirement: "tensorflow" },
    note: "Convolutions (cuDNN) are refused by name. Start the kernel again after its GPU was lost.",
  },
  torch: {
    ...{ name: "PyTorch", requirement: "torch" },
    note: "Products of matrices and transforms work; its own kernels need a real GPU and say so.",
  },
  triton: { name: "Triton", requirement: "triton" },
};

/** Every recorded run. All of them went through the wire, onto the software GPU. */
export async function conformanceRuns(): Promise<ConformanceRun[]> {
  const suites = (await readdir(SUITES)).sort();
  return await Promise.all(
    suites.map(async (suite) => {
      const read = async (file: string) =>
        JSON.parse(await readFile(path.join(SUITES, suite, file), "utf8")) as unknown;
      const { title, requirements } = suiteSchema.parse(await read("suite.json"));
      const { date, counts } = resultSchema.parse(await read("result.json"));
      const shown = SHOWN[suite];
      if (shown === undefined)
        throw new Error(`${suite}: scripts/generate/conformance.ts does not say how it is shown.`);
      const pinned = requirements.map((line) => line.split("==")).find(([name]) => name === shown.requirement);
      return {
        ...{ suite, title, package: shown.name, version: pinned?.[1] ?? null, note: shown.note ?? null },
        ...{ gpuType: "soft", way: "remote", date },
        ...{ passed: counts.passed, of: counts.collected - counts.not_applicable },
      };
    }),
  );
}
