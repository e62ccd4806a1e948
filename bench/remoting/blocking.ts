/** Blocking round trips of PyTorch programs, counted iteration by iteration on the null backend. */
import { execFile } from "node:child_process";
import { mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { prepareSuite } from "#scripts/conformance/prepare.ts";
import { suiteSchema } from "#scripts/conformance/suite.ts";
import { buildWheel } from "#scripts/start/builds.ts";

export const PROGRAMS = ["gpt", "mlp", "inference"] as const;

const callSchema = z.strictObject({
  function: z.string(),
  operation: z.string(),
  /** The line of the program that caused it; empty for threads without Python. */
  line: z.string(),
  count: z.int().positive(),
});
const countedSchema = z.strictObject({ program: z.string(), iterations: z.array(z.array(callSchema)) });

/** How many blocking calls there were. */
type Blocking = {
  /** In the first two iterations and before them: libraries are opened, handles and plans are made. */
  first: number;
  /** The most of an iteration from the third on; the last one, where inference reads, is left out. */
  steady: number;
};

function blockingOf(iterations: { count: number }[][]): Blocking {
  const sums = iterations.map((calls) => calls.reduce((sum, call) => sum + call.count, 0));
  return { first: sums.slice(0, 2).reduce((all, one) => all + one, 0), steady: Math.max(...sums.slice(2, -1)) };
}

/**
 * Runs the programs and answers the counts of each; prints what the first iterations waited for, by cause.
 * PyTorch is the conformance suite's, downloaded once (2 GB), or the one of the interpreter in SLUICE_TORCH_PYTHON,
 * where the wheel of this build has to be installed too: without its start-up hook PyTorch loads the cuBLAS beside it.
 */
export async function countBlocking(
  root: string,
  onLine: (line: string) => void,
): Promise<Record<(typeof PROGRAMS)[number], Blocking>> {
  const python = process.env.SLUICE_TORCH_PYTHON ?? (await pythonWithTorch(root, onLine));
  const folder = path.join(root, "native", "target", "release");
  const none = { first: 0, steady: 0 };
  const counts = { gpt: none, mlp: none, inference: none };
  for (const name of PROGRAMS) {
    const script = path.join(root, "bench", "remoting", "blocking.py");
    const words = ["--backend", "null", "--", python, script, name];
    const { stdout } = await promisify(execFile)(path.join(folder, "sluice-loopback"), words, {
      env: { ...process.env, SLUICE_NATIVE_DIR: folder, PYTHONPATH: path.join(root, "native", "python") },
      maxBuffer: 64 << 20,
    });
    const { iterations } = countedSchema.parse(JSON.parse(stdout.trim().split("\n").at(-1) ?? ""));
    counts[name] = blockingOf(iterations);
    for (const [index, calls] of iterations.slice(0, 2).entries()) {
      for (const cause of causes(calls)) onLine(`  ${name}, iteration ${index + 1}: ${cause}`);
    }
  }
  return counts;
}

function causes(calls: { operation: string; count: number }[]): string[] {
  const sums = new Map<string, number>();
  for (const { operation, count } of calls) sums.set(operation, (sums.get(operation) ?? 0) + count);
  return [...sums].sort((a, b) => b[1] - a[1]).map(([operation, count]) => `${count} ${operation}`);
}

async function pythonWithTorch(root: string, onLine: (line: string) => void): Promise<string> {
  const cache = path.join(root, ".sluice", "conformance");
  const definition = path.join(root, "native", "conformance", "suites", "torch", "suite.json");
  await mkdir(cache, { recursive: true });
  const suite = suiteSchema.parse(JSON.parse(await readFile(definition, "utf8")));
  return prepareSuite(root, "torch", suite, await buildWheel(root, cache, onLine), onLine);
}
