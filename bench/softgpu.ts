/**
 * How fast the software GPU runs kernels, without client and gpud around it, against what the same machine does
 * otherwise: NumPy, the same kernels by Numba for the CPU, and Numba's CUDA simulator. And, as `gpud_mb`, the most memory
 * in MB that a gpud with such a GPU held beyond what it lends while a program ran. `machine_scaling_2` is what two
 * threads of plain arithmetic gain over one in the same run: `scaling_2` cannot be more on processors that share a core.
 */
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { figures, nativeProgram, program } from "#scripts/bench/program.ts";
import { run as execute } from "#scripts/lib/processes.ts";

export const targets = {
  matmul_gflops: ">= 6",
  saxpy_vs_numpy: "<= 3",
  vs_njit_parallel: "<= 15",
  vs_simulator: ">= 1000",
  scaling_2: ">= 1.8",
  gpud_mb: "<= 100",
};

export async function run(): Promise<{ metrics: Record<string, number> }> {
  const root = path.resolve(import.meta.dirname, "..");
  const print = (line: string) => console.log(`  ${line}`);
  const ours = await nativeProgram("sluice-softgpu-bench", figures, ["2"]);
  const memory = await nativeProgram("sluice-memory-bench", figures);
  const python = await environment(root, print);
  const script = path.join(root, "bench/softgpu/reference.py");
  const call = (mode: string, env: Record<string, string>) => program(python, [script, mode], figures, env);
  const cpu = await call("cpu", { NUMBA_NUM_THREADS: "2" });
  const simulator = await call("simulator", { NUMBA_ENABLE_CUDASIM: "1" });
  const times = (ours: number | undefined, other: number | undefined) => (ours ?? Number.NaN) / (other ?? Number.NaN);
  const slower = ["mandelbrot_ms", "kmeans_ms"].map((name) => times(ours[name], cpu[name]));
  const faster = ["small_mandelbrot_ms", "small_kmeans_ms", "small_matmul_ms"].map((name) =>
    times(simulator[name], ours[name]),
  );
  return {
    metrics: {
      matmul_gflops: ours.matmul_gflops ?? Number.NaN,
      saxpy_vs_numpy: times(ours.saxpy_ms, cpu.saxpy_ms),
      vs_njit_parallel: Math.max(...slower),
      vs_simulator: faster.reduce((product, one) => product * one, 1) ** (1 / faster.length),
      jit_ms: ours.jit_ms ?? Number.NaN,
      scaling_2: ours.scaling_2 ?? Number.NaN,
      machine_scaling_2: ours.machine_scaling_2 ?? Number.NaN,
      gpud_mb: memory.gpud_mb ?? Number.NaN,
    },
  };
}

/** A Python with Numba for the comparison, kept between runs. */
async function environment(root: string, print: (line: string) => void): Promise<string> {
  const folder = path.join(tmpdir(), "sluice-bench-softgpu");
  const python = path.join(folder, "bin", "python");
  if (!existsSync(python)) {
    await execute("python3", ["-m", "venv", folder], { onLine: print });
    const requirements = path.join(root, "bench/softgpu/requirements.txt");
    await execute(python, ["-m", "pip", "install", "-q", "-r", requirements], { onLine: print });
  }
  return python;
}
