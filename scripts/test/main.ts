/**
 * `npm test`: every suite that needs no cluster, from a clean checkout, with one closing line. Names as arguments
 * (`npm test -- vitest`) run only those.
 */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { buildNativeForTests } from "#scripts/start/builds.ts";
import { closingLine, RESULT_FILE, type Result, sum, table } from "#scripts/test/result.ts";
import { cargo, playwright, pytest, type Runner, vitest } from "#scripts/test/runners.ts";

const root = process.cwd();
const out = path.join(root, ".sluice", "test");
const RUNNERS: Runner[] = [cargo, vitest, pytest, playwright];

const wanted = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const unknown = wanted.filter((name) => !RUNNERS.some((runner) => runner.name === name));
if (unknown.length > 0) {
  console.error(`No suite named ${unknown.join(", ")}. There are: ${RUNNERS.map((runner) => runner.name).join(", ")}.`);
  process.exit(2);
}

await mkdir(out, { recursive: true });
const results: Result[] = [];
const runners = RUNNERS.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
const prepared = new Map(runners.map((runner) => [runner, runner.prepare?.(root, out)]));
for (const work of prepared.values()) work?.catch(() => undefined);

// The other suites run the built programs.
await measured("build", async () => {
  await buildNativeForTests(root, (line) => console.log(line));
  return { passed: 0, failed: 0 };
});
const ahead = new Map(runners.map((runner) => [runner, runner.buildAhead?.(root, out)]));
for (const work of ahead.values()) work?.catch(() => undefined);
for (const runner of runners) {
  await measured(runner.name, async () => {
    await Promise.all([prepared.get(runner), ahead.get(runner)]);
    return await runner.run(root, out);
  });
}

console.log("");
console.log(
  table(results, { build: 240, ...Object.fromEntries(RUNNERS.map((runner) => [runner.name, runner.budget])) }),
);
await writeFile(RESULT_FILE, JSON.stringify(sum(results)));
console.log(closingLine(results));
process.exit(results.some((result) => result.failed > 0) ? 1 : 0);

async function measured(name: string, work: () => Promise<Omit<Result, "name" | "seconds">>): Promise<void> {
  const started = Date.now();
  console.log(`\n== ${name} ==`);
  const seconds = () => (Date.now() - started) / 1000;
  try {
    const counts = await work();
    results.push({ name, ...counts, seconds: seconds() });
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    results.push({ name, passed: 0, failed: 1, seconds: seconds(), note: "could not run" });
  }
}
