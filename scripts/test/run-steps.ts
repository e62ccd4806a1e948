/** Runs the steps of a command from start to closing line: `npm test`, `.ci/run` and `npm run verify` differ only in them. */
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { cacheFolder } from "#scripts/lib/cache.mjs";
import { keepRecord } from "#scripts/test/record.ts";
import { closingLine, closingTable } from "#scripts/test/result.ts";
import { runSteps } from "#scripts/test/schedule.ts";
import type { Step, StepResult } from "#scripts/test/step.ts";

const started = Number(process.env.SLUICE_STARTED_AT ?? Date.now());

/** Prints every step's lines behind its name, with the seconds since the start. */
export async function runCommand(root: string, command: string, steps: readonly Step[]): Promise<StepResult[]> {
  const isWarm = existsSync(cacheFolder("cargo"));
  const print = (line: string) => console.log(`${((Date.now() - started) / 1000).toFixed(0).padStart(5)} s  ${line}`);
  const results = await runSteps(steps, { cores: Math.max(2, availableParallelism()), print });
  await keepRecord(root, { command, startedAt: started, isWarm, results });
  console.log(`\n${closingTable(results)}`);
  return results;
}

/** Prints the closing line, and ends with what it says. */
export function endWith(results: readonly StepResult[]): never {
  console.log(closingLine(results));
  process.exit(results.some(({ failed }) => failed > 0) ? 1 : 0);
}
