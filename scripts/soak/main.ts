/**
 * `npm run soak [-- <part>…] [--seconds 600] [--histories N] [--kills N] [--seed N] [--record]`: what finds its bugs only in hours.
 * Each part is a test that plays for longer than in `npm test`, all but the contract's from a seed that is chosen here
 * and told, so that what is found can be played again. The last line is one JSON object `{"name", "metrics"}`
 * with the seconds and findings of each part; `--record` keeps each part that ran, with the commit it ran on, its seed
 * and how much it played, in `bench/results/soak.json`.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { run } from "#scripts/lib/processes.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "600" },
    histories: { type: "string" },
    kills: { type: "string", default: "100" },
    seed: { type: "string" },
    record: { type: "boolean", default: false },
  },
});
const root = process.cwd();
const native = path.join(root, "native");
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const LEAVERS = 100_000;
/** 20 ms each. */
const histories = Number(values.histories ?? Number(values.seconds) * 50);
const kills = Number(values.kills);
if (![seed, histories, kills].every(Number.isSafeInteger) || histories < 1 || kills < 1) {
  console.error("--seed, --histories and --kills are whole numbers.");
  process.exit(2);
}
/** Root has the installation of `kills` in a mount namespace of its own, with a small disk. */
const ownMounts = process.getuid?.() === 0 ? ["unshare", "--mount", "--propagation", "private", "--"] : [];
const [killsCommand = process.execPath, ...killsArgs] = [...ownMounts, process.execPath, "scripts/soak/kills/main.ts"];
const fuzzing = { SLUICE_FUZZ_SECONDS: values.seconds, CARGO_TERM_COLOR: "never" };
/** A fuzzer in a package's test program named `all`. */
const fuzzer = (name: string, test: string) => [
  ...["test", "--release", "--locked", "-p", name, "--test", "all", "--", "--nocapture", test],
];

/** `played`: what follows from the seed alone, by name. */
type Part = {
  command: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  played?: Record<string, number>;
};

const PARTS: Record<string, Part> = {
  /** Spoiled frames at gpud's port. */
  frames: {
    command: "cargo",
    args: fuzzer("sluice-gpud", "spoiled_frames_end_their_connection"),
    cwd: native,
    env: { ...fuzzing, SLUICE_FUZZ_SEED: String(seed) },
    played: { seed },
  },
  /** A line to gpud that is cut for as long as an installation's sessions wait, and for longer. */
  outages: {
    command: "cargo",
    args: ["test", "--release", "--locked", "-p", "sluice-conformance", "--test", "long_outages"],
    cwd: native,
    env: { SLUICE_RETURN_SECONDS: "30", CARGO_TERM_COLOR: "never" },
  },
  /** Random PTX in the software GPU and in its scalar reference. */
  ptx: {
    command: "cargo",
    args: fuzzer("sluice-softgpu", "random_programs_agree_with_the_reference"),
    cwd: native,
    env: { ...fuzzing, SLUICE_FUZZ_FROM: String(seed) },
    played: { seed },
  },
  /** Random histories of the scheduler. */
  histories: {
    command: process.execPath,
    args: ["node_modules/vitest/vitest.mjs", "run", "server/scheduler/history/histories.test.ts"],
    cwd: root,
    env: { SLUICE_HISTORIES: String(histories), SLUICE_SEED: String(seed) },
    played: { seed, histories },
  },
  /** Right and wrong inputs at every route of the API; all routes twice a second. */
  contract: {
    command: process.execPath,
    args: ["node_modules/vitest/vitest.mjs", "run", "app/api/contract.test.ts"],
    cwd: root,
    env: { SLUICE_CONTRACT_RUNS: String(Number(values.seconds) * 2) },
  },
  /** Clients that leave the gateway before they are admitted. */
  leavers: {
    command: process.execPath,
    args: ["node_modules/vitest/vitest.mjs", "run", "server/gateway/early-leavers.test.ts"],
    cwd: root,
    env: { SLUICE_TEST_LEAVERS: String(LEAVERS) },
  },
  /** A whole installation whose processes are killed under a busy queue, and that loses database, disk and time. */
  kills: {
    command: killsCommand,
    args: killsArgs,
    cwd: root,
    env: { SLUICE_KILLS: String(kills), SLUICE_SEED: String(seed), SLUICE_SOAK_SECONDS: values.seconds },
    played: { seed },
  },
  ...Object.fromEntries(
    ["minimal", "cuda-python", "jax", "pytorch", "cupy"].map((name) => [`image-${name}`, image(name)]),
  ),
};

/** The image of an environment, built from its lock and started on a cluster of its own; takes as long as it takes. */
function image(environment: string): Part {
  return {
    command: process.execPath,
    args: ["scripts/cluster.mjs", "test", "workspaces"],
    cwd: root,
    env: { SLUICE_TEST_ENVIRONMENTS: environment },
  };
}

const chosen = positionals.length > 0 ? positionals : Object.keys(PARTS);
const parts = chosen.map((name) => {
  const part = PARTS[name];
  if (part === undefined) {
    console.error(`No part named ${name}. There are: ${Object.keys(PARTS).join(", ")}.`);
    process.exit(2);
  }
  return { name, ...part };
});

const commit = execFileSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8" }).trim();
const metrics: Record<string, number> = {};
for (const { name, command, args, cwd, env, played = {} } of parts) {
  const began = Date.now();
  for (const [what, value] of Object.entries(played)) metrics[`${name}_${what}`] = value;
  metrics[`${name}_findings`] = 0;
  const onLine = (line: string) => {
    console.log(line);
    const [, count, what] = /^(\d+) (programs|kills|outages|grants|waited|turns)$/.exec(line) ?? [];
    if (count !== undefined) metrics[`${name}_${what}`] = Number(count);
  };
  try {
    await run(command, args, { cwd, env: { ...process.env, ...env }, onLine });
  } catch (error) {
    metrics[`${name}_findings`] = 1;
    console.error(error instanceof Error ? error.message : error);
  }
  metrics[`${name}_seconds`] = Math.round((Date.now() - began) / 1000);
}
for (const [name, value] of Object.entries(metrics)) console.log(`soak         ${name.padEnd(24)} ${value}`);
if (values.record) {
  const about = { date: new Date().toISOString().slice(0, 10), commit };
  const file = path.join(root, "bench", "results", "soak.json");
  const parts: Record<string, Record<string, string | number>> = {};
  if (existsSync(file))
    Object.assign(parts, (JSON.parse(await readFile(file, "utf8")) as { parts: typeof parts }).parts);
  for (const name of chosen) {
    const own = Object.entries(metrics).filter(([metric]) => metric.startsWith(`${name}_`));
    parts[name] = {
      ...about,
      ...Object.fromEntries(own.map(([metric, value]) => [metric.slice(name.length + 1), value])),
    };
  }
  await writeFile(file, `${JSON.stringify({ name: "soak", parts }, null, 2)}\n`);
}
console.log(JSON.stringify({ name: "soak", metrics }));
process.exit(chosen.some((name) => metrics[`${name}_findings`] !== 0) ? 1 : 0);
