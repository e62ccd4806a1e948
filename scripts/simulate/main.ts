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

type Numeric = "per-server" | "guaranteed-percent" | "price-per-hour" | "seed" | "days" | "teams" | "people";

/** What an option says, or the sentence about what is wrong with it. */
function numberOf(option: Numeric, { least, most = Number.MAX_SAFE_INTEGER, whole = true }: Bounds): number {
  const text = values[option];
  const value = Number(text);
  const kind = whole ? "a whole number" : "a number";
  if (text.trim() === "" || !(value >= least && value <= most) || (whole && !Number.isInteger(value))) {
    throw new Error(
      `--${option} ${text} is not ${kind} from ${least}${most < Number.MAX_SAFE_INTEGER ? ` to ${most}` : ""}`,
    );
  }
  return value;
}
type Bounds = { least: number; most?: number; whole?: boolean };

function doubling(from: number, to: number): number[] {
  if (from < 1 || to < from) return [];
  const sizes: number[] = [];
  for (let size = from; size < to; size *= 2) sizes.push(size);
  return [...sizes, to];
}

if (values.generate !== undefined) {
  const trace = generateTrace({
    ...{ seed: numberOf("seed", { least: 0 }), days: numberOf("days", { least: 1 }) },
    ...{ teams: numberOf("teams", { least: 1 }), peoplePerTeam: numberOf("people", { least: 1 }) },
  });
  await writeFile(values.generate, formatTrace(trace));
  console.log(`Wrote ${trace.length} requests to ${values.generate}.`);
}
const file = positionals[0] ?? values.generate;
if (file === undefined) {
  console.error("Which trace?  npm run simulate -- trace.csv --gpus 8..64   (--generate trace.csv writes one)");
  process.exit(2);
}
const trace = parseTrace(await readFile(file, "utf8"));
const pool = {
  gpusPerServer: numberOf("per-server", { least: 1 }),
  memoryBytes: 80 * 1024 ** 3,
  guaranteedPercent: numberOf("guaranteed-percent", { least: 0, most: 100, whole: false }),
  microPerGpuHour: Math.round(numberOf("price-per-hour", { least: 0, whole: false }) * 1e6),
};
const outcomes = sizesOf(values.gpus).map((gpus) => simulate(trace, { gpus, ...pool }));
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
