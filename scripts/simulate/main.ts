/**
 * `npm run simulate -- trace.csv --gpus 8..64 [--json]`: replays a trace of requests through the production scheduler
 * in virtual time, for each pool size. `npm run simulate -- --generate trace.csv` writes a realistic trace first.
 */
import { readFile, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { simulate } from "#server/scheduler/simulate/simulate.ts";
import { formatTrace, generateTrace, parseTrace } from "#server/scheduler/simulate/trace.ts";

const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  options: {
    gpus: { type: "string", default: "8..64" },
    "per-server": { type: "string", default: "8" },
    "guaranteed-percent": { type: "string", default: "70" },
    "price-per-hour": { type: "string", default: "2.1" },
    generate: { type: "string" },
    seed: { type: "string", default: "1" },
    days: { type: "string", default: "5" },
    teams: { type: "string", default: "6" },
    people: { type: "string", default: "8" },
    json: { type: "boolean", default: false },
  },
});

/** `8..64` doubles from 8 to 64; `8,12,16` is a list. */
function sizesOf(text: string): number[] {
  const range = /^(\d+)\.\.(\d+)$/.exec(text);
  const sizes = range ? doubling(Number(range[1]), Number(range[2])) : text.split(",").map(Number);
  if (sizes.length === 0 || !sizes.every((size) => Number.isSafeInteger(size) && size >= 1)) {
    throw new Error(`--gpus ${text} is no pool size; write 8..64 or 8,12,16`);
  }
  return sizes;
}

function doubling(from: number, to: number): number[] {
  if (from < 1 || to < from) return [];
  const sizes: number[] = [];
  for (let size = from; size < to; size *= 2) sizes.push(size);
  return [...sizes, to];
}

if (values.generate !== undefined) {
  const options = { seed: Number(values.seed), days: Number(values.days) };
  const trace = generateTrace({ ...options, teams: Number(values.teams), peoplePerTeam: Number(values.people) });
  await writeFile(values.generate, formatTrace(trace));
  console.log(`Wrote ${trace.length} requests to ${values.generate}.`);
}
const file = positionals[0] ?? values.generate;
if (file === undefined) {
  console.error("Which trace?  npm run simulate -- trace.csv --gpus 8..64   (--generate trace.csv writes one)");
  process.exit(2);
}
const trace = parseTrace(await readFile(file, "utf8"));
const outcomes = sizesOf(values.gpus).map((gpus) =>
  simulate(trace, {
    gpus,
    gpusPerServer: Number(values["per-server"]),
    memoryBytes: 80 * 1024 ** 3,
    guaranteedPercent: Number(values["guaranteed-percent"]),
    microPerGpuHour: Math.round(Number(values["price-per-hour"]) * 1e6),
  }),
);
if (values.json) console.log(JSON.stringify(outcomes));
else {
  console.table(
    outcomes.map((one) => ({
      GPUs: one.gpus,
      granted: one.granted,
      refused: one.refused,
      "taken back": one.reclaimed,
      "wait p50 s": Math.round(one.waitP50 ?? 0),
      "p95 s": Math.round(one.waitP95 ?? 0),
      "p99 s": Math.round(one.waitP99 ?? 0),
      "utilised %": Math.round(one.utilisation * 1000) / 10,
      fairness: Math.round(one.fairness * 1000) / 1000,
      cost: Math.round(one.costMicro / 1e4) / 100,
      "per held GPU-h": Math.round(one.costPerHeldHourMicro / 1e4) / 100,
    })),
  );
}
