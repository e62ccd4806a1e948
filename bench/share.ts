/**
 * Whether leases get their shares of one software GPU: busy neighbours in several proportions, short kernels beside
 * long ones, graphs and copies beside kernels, and an idle neighbour. A share is what a program finished over what it
 * finished alone; gpud's counters are not asked. The same once more without the arbiter, where shares do not hold.
 */
import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { buildNativeForTests } from "#scripts/start/builds.ts";

/** Of each measurement, together and alone. */
const SECONDS = 10;

export const targets = { max_deviation_pp: "<= 3", total_vs_solo: ">= 0.97", idle_neighbour: ">= 0.98" };

const report = z.object({
  max_deviation_pp: z.number(),
  total_vs_solo: z.number(),
  idle_neighbour: z.number(),
  off_max_deviation_pp: z.number(),
  shares: z.record(z.string(), z.array(z.number())),
});

export async function run(): Promise<{ metrics: Record<string, number> }> {
  const root = path.resolve(import.meta.dirname, "..");
  await buildNativeForTests(root, (line) => console.log(`  ${line}`));
  const folder = path.join(root, "native", "target", "release");
  const { stdout } = await promisify(execFile)(path.join(folder, "sluice-share-bench"), [String(SECONDS)], {
    env: { ...process.env, SLUICE_NATIVE_DIR: folder },
  });
  const { shares, ...metrics } = report.parse(JSON.parse(stdout.trim().split("\n").at(-1) ?? "{}"));
  for (const [name, values] of Object.entries(shares)) {
    console.log(`  ${name}: ${values.map((value) => `${(value * 100).toFixed(1)} %`).join(", ")}`);
  }
  return { metrics };
}
