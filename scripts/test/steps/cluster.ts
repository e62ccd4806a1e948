/** The tests on a real Kubernetes, by `npm run test:cluster` in a process of its own. */
import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { z } from "zod";
import { attempt, run } from "#scripts/lib/processes.ts";
import { CLUSTER_RESULT_FILE, failureOf, withProblem } from "#scripts/test/result.ts";
import type { Outcome, Print } from "#scripts/test/step.ts";

/** Seconds. Each test has a limit of its own; this one is for what brings the cluster up. */
const LIMIT_S = 6000;

const resultSchema = z.object({
  passed: z.int(),
  failed: z.int(),
  /** Why this machine runs no cluster. */
  skipped: z.string().optional(),
  flaky: z.array(z.string()),
  failures: z.array(z.string()),
  hung: z.array(z.string()),
  files: z.array(z.object({ file: z.string(), seconds: z.number() })),
});

/** Builds and downloads what the cluster needs, without bringing it up. */
export async function prepareCluster(print: Print): Promise<void> {
  await run(process.execPath, ["scripts/cluster.mjs", "prepare"], { onLine: print, background: true, limit: LIMIT_S });
}

/** Brings the cluster up, runs its tests (`files`: parts of file names; none means all), and ends it. */
export async function runCluster(print: Print, files: readonly string[]): Promise<Outcome> {
  await rm(CLUSTER_RESULT_FILE, { force: true });
  const words = ["scripts/cluster.mjs", "test", ...files];
  const problem = await attempt(() => run(process.execPath, words, { onLine: print, limit: LIMIT_S }));
  if (!existsSync(CLUSTER_RESULT_FILE)) {
    const note = problem?.split("\n", 1)[0] ?? "no result";
    return { passed: 0, failed: 1, note, failures: [failureOf("no result", problem)] };
  }
  const { hung, skipped, ...told } = resultSchema.parse(JSON.parse(await readFile(CLUSTER_RESULT_FILE, "utf8")));
  if (skipped !== undefined) return { ...told, note: `skipped: ${skipped}` };
  return withProblem({ ...told, ...(hung.length > 0 ? { note: `hung: ${hung.join(", ")}` } : {}) }, problem);
}
