/**
 * `npm run conformance -- <suite> [--json] [--record] [--again] [-- PYTEST-ARGUMENTS]`: runs a suite of CUDA programs, unmodified,
 * through the wire (client, gpud, software GPU) and prints what passed; with `--json` the last line is one JSON object
 * `{"suite", "collected", "not_applicable", "passed", "failed", "skipped"}`. Packages are downloaded once into
 * `.sluice/conformance`. `--record` writes the result to the suite's `result.json` and the list of what
 * did not pass to its page; `--again` runs only what failed the last time. A run of a part (`-- -k cub`) adds to what
 * earlier ones have found. Not part of `npm test`.
 */
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { run } from "#scripts/lib/processes.ts";
import { buildNativeForTests, buildWheel } from "#scripts/start/builds.ts";
import { prepareSuite } from "./prepare.ts";
import { count, merged, outcomesSchema, result, type Suite, suiteSchema, withListing } from "./suite.ts";

const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    record: { type: "boolean", default: false },
    again: { type: "boolean", default: false },
  },
});
const root = process.cwd();
const suites = path.join(root, "native", "conformance", "suites");
// Apart from the suites: in one of their folders, a suite named like a package would hide it.
const plugins = path.join(root, "native", "conformance", "plugins");
const cache = path.join(root, ".sluice", "conformance");
const [name, ...pytestArguments] = positionals;
const known = (await readdir(suites, { withFileTypes: true })).filter((entry) => entry.isDirectory());
if (name === undefined || !known.some((entry) => entry.name === name)) {
  console.error(`Name a suite: ${known.map((entry) => entry.name).join(", ")}.`);
  process.exit(2);
}

const print = (line: string) => console.log(line);
const suite = suiteSchema.parse(JSON.parse(await readFile(path.join(suites, name, "suite.json"), "utf8")));
await mkdir(cache, { recursive: true });
await buildNativeForTests(root, print);
const wheel = await buildWheel(root, cache, print);
const python = await prepareSuite(root, name, suite, wheel, print);
const kept = path.join(cache, `${name}.json`);
const part = values.again || pytestArguments.length > 0;
const before = part && existsSync(kept) ? outcomesSchema.parse(JSON.parse(await readFile(kept, "utf8"))) : [];
const report = path.join(cache, `${name}.run.json`);
await rm(report, { force: true });
if (values.again) {
  const only = path.join(cache, `${name}.only.json`);
  const failedBefore = before.filter(({ outcome }) => outcome === "failed").map(({ test }) => test);
  await writeFile(only, JSON.stringify(failedBefore));
  // As one word: pytest takes a word that is a path for where the tests are, and names them from there.
  pytestArguments.push(`--sluice-only=${only}`);
}
await runSuite(suite, python, report);
if (!existsSync(report)) {
  console.error("The suite ended without a report.");
  process.exit(1);
}
const ran = outcomesSchema.parse(JSON.parse(await readFile(report, "utf8")));
const outcomes = part ? merged(before, ran) : ran;
await writeFile(kept, JSON.stringify(outcomes));
const counts = count(outcomes, suite.notApplicable);
for (const outcome of outcomes) if (outcome.outcome === "failed") console.log(`FAILED ${outcome.test}`);
const { collected, not_applicable, passed, failed, skipped } = counts;
console.log(
  `${suite.title}: ${passed} of ${collected - not_applicable} applicable tests passed, ${failed} failed, ` +
    `${skipped} skipped; ${not_applicable} of ${collected} not applicable`,
);
if (values.record) {
  const today = new Date().toISOString().slice(0, 10);
  const recorded = result(today, outcomes, suite);
  await writeFile(path.join(suites, name, "result.json"), `${JSON.stringify(recorded, null, 2)}\n`);
  if (suite.page !== undefined) {
    const page = path.join(root, suite.page);
    await writeFile(page, withListing(await readFile(page, "utf8"), recorded));
  }
}
if (values.json) console.log(JSON.stringify({ suite: name, ...counts }));
process.exit(failed === 0 && passed > 0 ? 0 : 1);

/** In the surroundings of a workspace: an own gpud, a lease, and our libraries first. */
async function runSuite(
  { memoryBytes, pytest, tests = name ?? "" }: Suite,
  interpreter: string,
  out: string,
): Promise<void> {
  const folder = path.join(root, "native", "target", "release");
  const words = ["-m", "pytest", "-p", "report", "--sluice-report", out, "-p", "no:cacheprovider", ...pytest];
  await run(
    path.join(folder, "sluice-loopback"),
    ["--memory", String(memoryBytes), "--", interpreter, ...words, ...pytestArguments],
    {
      cwd: path.join(suites, tests),
      env: { ...process.env, SLUICE_NATIVE_DIR: folder, PYTHONPATH: plugins, PYTHONDONTWRITEBYTECODE: "1" },
      onLine: print,
    },
    // Failing tests are what the report tells.
  ).catch(() => undefined);
}
