/**
 * `npm run bench -- <name> [--json]`: runs one benchmark (or all) and prints a table; with `--json` the last line is
 * one JSON object `{"name", "metrics", "machine"}`. Each benchmark is `bench/<name>.ts` with an exported `run()`.
 */
import { readdir } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";

export type Benchmark = {
  /** Name of each figure → the value to reach, for the table. */
  targets?: Record<string, string>;
  run: (options: { json: boolean }) => Promise<{ metrics: Record<string, number> }>;
};

const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  options: { json: { type: "boolean", default: false } },
});

const folder = path.join(process.cwd(), "bench");
const known = (await readdir(folder))
  .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
  .map((file) => file.slice(0, -3));
const names = positionals.length > 0 ? positionals : known;
const unknown = names.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  console.error(`No benchmark named ${unknown.join(", ")}. There are: ${known.join(", ")}.`);
  process.exit(2);
}

// Benchmarks ask as fast as the broker answers.
process.env.SLUICE_LEASE_REQUESTS_PER_MINUTE ??= "1000000";
for (const name of names) {
  const benchmark = (await import(path.join(folder, `${name}.ts`))) as Benchmark;
  const { metrics } = await benchmark.run({ json: values.json });
  for (const [metric, value] of Object.entries(metrics)) {
    const target = benchmark.targets?.[metric];
    console.log(
      `${name.padEnd(12)} ${metric.padEnd(24)} ${format(value).padStart(14)}${target ? `   reach ${target}` : ""}`,
    );
  }
  if (values.json) console.log(JSON.stringify({ name, metrics, machine: machine() }));
}
process.exit(0);

function format(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toPrecision(4);
}

function machine(): Record<string, string | number> {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryBytes: totalmem(),
    node: process.versions.node,
    date: new Date().toISOString(),
  };
}
