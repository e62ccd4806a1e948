/**
 * `npm run verify`: everything that is checked, with what is too long for every landing. When all of it has passed on
 * one committed tree, `.ci/verified` is written: commit it, and `.ci/run` then selects suites by what changes.
 *
 *   npm run verify                     all parts
 *   npm run verify -- rust cluster     only these parts; the record is written when the last part has passed
 *   npm run verify -- --shard 2/3      the second of three shares of about the same length
 *
 * Parts that have passed on this tree are remembered in `.sluice/verify/<tree>.json` and are not run again.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { cpuName } from "#scripts/lib/cpu-name.ts";
import { run } from "#scripts/lib/processes.ts";
import { quickChecks, type Scope, SUITE_NAMES, type SuiteName, slowChecks, suiteSteps } from "#scripts/test/plan.ts";
import { endWith, runCommand } from "#scripts/test/run-steps.ts";
import { treeWithoutRecord, VERIFIED_FILE, type verifiedSchema } from "#scripts/test/selection.ts";
import { type Step, type StepResult, sum } from "#scripts/test/step.ts";
import { runRustTests } from "#scripts/test/steps/rust.ts";

const root = process.cwd();
const FUZZ_SECONDS = 60;
const HISTORIES = 3000;
const LIMIT_S = 1800;

/** Steps that no landing runs. */
const LONG: Record<string, { command: string; args: string[]; env?: Record<string, string> }> = {
  "scheduler histories": {
    command: process.execPath,
    args: ["node_modules/vitest/vitest.mjs", "run", "--retry=0", "server/scheduler/history/histories.test.ts"],
    env: { SLUICE_HISTORIES: String(HISTORIES) },
  },
  "our twenty in Numba": { command: process.execPath, args: ["scripts/conformance.mjs", "own"] },
  "Triton programs": { command: process.execPath, args: ["scripts/conformance.mjs", "triton"] },
  "limits in a virtual machine": { command: process.execPath, args: ["scripts/guest.mjs"] },
  "container images": { command: process.execPath, args: ["scripts/images.mjs"] },
};
const REPEATED = ["conformance/killed_worker", "conformance/outages", "conformance/generations", "conformance/parking"];
const REPETITIONS = 5;

const { values, positionals } = parseArgs({ allowPositionals: true, options: { shard: { type: "string" } } });
/** Ordered so that shares of equal number take about equal time. */
const PARTS = ["cluster", "checks", "playwright", "rust", "vitest", "long", "pytest"] as const;
type Part = (typeof PARTS)[number];

const wanted = wantedParts();
const git = (...args: string[]) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
const readChanges = () => git("status", "--porcelain", "--untracked-files=all", "--", ".", `:!${VERIFIED_FILE}`);
const changes = readChanges();
if (changes !== "") stop(`A verified tree is a committed one. Commit or remove first:\n${changes}`);
const commit = git("rev-parse", "HEAD");
const tree = treeWithoutRecord(root, commit);
const passedFile = path.join(root, ".sluice", "verify", `${tree}.json`);
const partsSchema = z.partialRecord(z.enum(PARTS), z.object({ passed: z.int(), minutes: z.number() }));
const before = existsSync(passedFile) ? partsSchema.parse(JSON.parse(await readFile(passedFile, "utf8"))) : {};
const parts = wanted.filter((part) => before[part] === undefined);
if (parts.length < wanted.length)
  console.log(`Passed on this tree before: ${wanted.filter((part) => before[part]).join(", ")}.`);

const setting = { root, out: path.join(root, ".sluice", "test"), fuzzSeconds: FUZZ_SECONDS };
const suites = SUITE_NAMES.filter((name) => parts.includes(name));
const has = (part: Part) => parts.includes(part);
const started = Date.now();
const results = await runCommand(root, ["npm run verify", ...parts].join(" "), [
  ...suiteSteps(
    setting,
    new Map(suites.map((name): [SuiteName, Scope] => [name, "all"])),
    has("long") || has("checks") ? ["native programs", "Rust tests compiled"] : [],
  ),
  ...(has("checks") ? [...quickChecks, ...slowChecks] : []),
  ...(has("long") ? longSteps() : []),
]);
const minutes = (Date.now() - started) / 60_000;
const isUnchanged = readChanges() === "" && treeWithoutRecord(root, "HEAD") === tree;
const kept = isUnchanged ? parts.filter(isClean) : [];
if (!isUnchanged) console.log("Nothing is recorded: the files changed while the tests ran.");
else if (kept.length < parts.length) {
  const missing = parts.filter((part) => !kept.includes(part)).join(", ");
  console.log(`Not recorded, for a failure, a flaky test or a suite that ran nothing: ${missing}.`);
}
if (kept.length > 0) await keep();
endWith(results);

/** The part that a step belongs to; undefined for a build, which belongs to all. */
function partOf({ name, kind }: StepResult): Part | undefined {
  if (kind === "build") return undefined;
  if (name in LONG || name === "repetitions") return "long";
  return PARTS.find((part) => part === name) ?? "checks";
}

/** Whether all steps of a part ran and passed, each at its first try. */
function isClean(part: Part): boolean {
  const own = results.filter((step) => [part, undefined].includes(partOf(step)));
  const isPassed = ({ kind, passed, failed, flaky = [] }: StepResult) =>
    failed === 0 && flaky.length === 0 && (kind === "build" || passed > 0);
  return own.some((step) => partOf(step) === part) && own.every(isPassed);
}

function wantedParts(): Part[] {
  const unknown = positionals.filter((word) => !PARTS.includes(word as Part));
  if (unknown.length > 0) stop(`No part is named ${unknown.join(", ")}. Choose from: ${PARTS.join(", ")}.`);
  if (values.shard === undefined) return PARTS.filter((part) => positionals.length === 0 || positionals.includes(part));
  if (positionals.length > 0) stop("Name parts or a share, not both.");
  const [, index = 0, count = 0] = (/^(\d+)\/(\d+)$/.exec(values.shard) ?? []).map(Number);
  if (index < 1 || index > count || index > PARTS.length) {
    stop(`--shard is INDEX/COUNT, such as 2/3, with an INDEX of at most ${PARTS.length}.`);
  }
  return PARTS.filter((_, place) => place % count === index - 1);
}

function stop(message: string): never {
  console.error(message);
  process.exit(2);
}

/** Remembers the parts that passed; with the last of them the whole tree is recorded as verified. */
async function keep(): Promise<void> {
  const now = kept.map((part) => {
    const { passed } = sum(results.filter((step) => partOf(step) === part));
    return [part, { passed, minutes: minutes / parts.length }] as const;
  });
  const all = { ...before, ...Object.fromEntries(now) };
  await mkdir(path.dirname(passedFile), { recursive: true });
  await writeFile(passedFile, JSON.stringify(all));
  const missing = PARTS.filter((part) => all[part] === undefined);
  if (missing.length > 0) {
    console.log(`Recorded: ${kept.join(", ")}. Not yet passed on this tree: ${missing.join(", ")}.`);
    return;
  }
  const total = Object.values(all).reduce((sum, part) => sum + part.passed, 0);
  const record: z.infer<typeof verifiedSchema> = {
    ...{ tree, commit, date: new Date().toISOString().slice(0, 10), cpu: cpuName() },
    minutes: Math.round(Object.values(all).reduce((sum, part) => sum + part.minutes, 0)),
    passed: total,
  };
  await writeFile(path.join(root, VERIFIED_FILE), `${JSON.stringify(record, null, 2)}\n`);
  console.log(`Everything passed on this tree. Commit ${VERIFIED_FILE}.`);
}

function longSteps(): Step[] {
  const programs = Object.entries(LONG).map(
    ([name, { command, args, env = {} }]): Step => ({
      ...{ name, kind: "check", after: ["native programs"], cores: 1 },
      run: async (print) => {
        await run(command, args, { cwd: root, env: { ...process.env, ...env }, onLine: print, limit: LIMIT_S });
        return undefined;
      },
    }),
  );
  const repeated: Step = {
    ...{ name: "repetitions", kind: "suite", after: ["Rust tests compiled"], cores: 1 },
    run: async (print) => {
      const outcomes = [];
      for (let count = 0; count < REPETITIONS; count++) {
        outcomes.push(await runRustTests(root, setting.out, print, { parallel: 2, wanted: REPEATED }));
      }
      return { ...sum(outcomes), flaky: outcomes.flatMap(({ flaky = [] }) => flaky) };
    },
  };
  return [...programs, repeated];
}
