/**
 * Whether leases get their shares of one software GPU: busy neighbours in several proportions, short kernels beside
 * long ones, graphs and copies beside kernels, and an idle neighbour. A share is what a program finished over what it
 * finished alone; gpud's counters are not asked. The same once more without the arbiter, where shares do not hold.
 */
import { z } from "zod";
import { nativeProgram } from "#scripts/bench/program.ts";

/** Of each measurement, together and alone. */
const SECONDS = 10;

export const targets = {
  max_deviation_pp: "<= 3",
  total_vs_solo: ">= 0.97",
  idle_neighbour: ">= 0.98",
  off_max_deviation_pp: "> 3",
};

const report = z.object({
  max_deviation_pp: z.number(),
  total_vs_solo: z.number(),
  idle_neighbour: z.number(),
  off_max_deviation_pp: z.number(),
  shares: z.record(z.string(), z.array(z.number())),
});

export async function run(): Promise<{ metrics: Record<string, number> }> {
  const { shares, ...overall } = await nativeProgram("sluice-share-bench", report, [String(SECONDS)]);
  const metrics: Record<string, number> = overall;
  for (const [name, values] of Object.entries(shares)) {
    if (name.endsWith(" arbiter on")) {
      metrics[`total ${name.slice(0, -" arbiter on".length)}`] = values.reduce((total, value) => total + value, 0);
    }
    console.log(`  ${name}: ${values.map((value) => `${(value * 100).toFixed(1)} %`).join(", ")}`);
  }
  return { metrics };
}
