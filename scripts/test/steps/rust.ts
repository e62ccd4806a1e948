/** The Rust tests: one cargo call compiles every test program, then the programs run side by side. */
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { cacheFolder } from "#scripts/lib/cache.mjs";
import { attempt, run } from "#scripts/lib/processes.ts";
import { failureOf } from "#scripts/test/result.ts";
import type { FileTime, Outcome, Print } from "#scripts/test/step.ts";

/** A compiled test program: `<crate>/<target>`, and the folder of its package, in which its tests run. */
export type TestProgram = { name: string; executable: string; folder: string };

/** A line of `cargo --message-format=json`: of what cargo tells, the programs made of tests. */
const artifactSchema = z.object({
  reason: z.literal("compiler-artifact"),
  manifest_path: z.string(),
  target: z.object({ name: z.string(), kind: z.array(z.string()) }),
  profile: z.object({ test: z.literal(true) }),
  executable: z.string(),
});

/** Seconds after which a program is ended: one of its tests hangs. The longest take a minute, or four with a compiler. */
const LIMIT_S = 900;
/** More failures than this are no accident of timing, and are not run once more. */
const MOST_RERUN = 3;

/** A test program that cargo's line names; undefined for every other line. */
export function testProgram(line: string): TestProgram | undefined {
  if (!line.startsWith("{")) return undefined;
  const parsed = artifactSchema.safeParse(JSON.parse(line));
  if (!parsed.success) return undefined;
  const { manifest_path, target, executable } = parsed.data;
  const folder = path.dirname(manifest_path);
  const name = target.kind.includes("test") ? target.name : "unit tests";
  return { name: `${path.basename(folder)}/${name}`, executable, folder };
}

const listFile = (out: string) => path.join(out, "rust-programs.json");

/** Compiles the test programs, and everything that they start. */
export async function compileRustTests(root: string, out: string, print: Print): Promise<void> {
  const programs: TestProgram[] = [];
  await mkdir(out, { recursive: true });
  await run(
    "cargo",
    ["test", "--no-run", "--release", "--locked", "--workspace", "--message-format=json-render-diagnostics"],
    {
      cwd: path.join(root, "native"),
      env: { ...process.env, CARGO_TERM_COLOR: "never" },
      background: true,
      onLine: (line) => {
        const program = testProgram(line);
        if (program !== undefined) programs.push(program);
        else if (!line.startsWith("{")) print(line);
      },
    },
  );
  await writeFile(listFile(out), JSON.stringify(programs));
}

/** Runs the compiled programs, `parallel` at a time; `wanted`, when given, selects some by their names. */
export async function runRustTests(
  root: string,
  out: string,
  print: Print,
  { parallel, wanted, env = {} }: { parallel: number; wanted?: readonly string[]; env?: Record<string, string> },
): Promise<Outcome> {
  const all = z
    .array(z.object({ name: z.string(), executable: z.string(), folder: z.string() }))
    .parse(JSON.parse(await readFile(listFile(out), "utf8")));
  const programs = all.filter(({ name }) => wanted === undefined || wanted.includes(name));
  const missing = wanted?.filter((name) => !all.some((program) => program.name === name)) ?? [];
  if (missing.length > 0) throw new Error(`No test program is named ${missing.join(", ")}.`);
  const secondsBefore = await readSeconds();
  // The longest first, so that none runs alone at the end. A new one may be long.
  programs.sort((a, b) => (secondsBefore[b.name] ?? 1000) - (secondsBefore[a.name] ?? 1000));
  const waiting = [...programs];
  const environment = {
    ...process.env,
    SLUICE_NATIVE_DIR: path.join(root, "native", "target", "release"),
    ...env,
  };
  const outcomes: { program: TestProgram; told: Told; seconds: number }[] = [];
  const worker = async () => {
    for (let program = waiting.shift(); program !== undefined; program = waiting.shift()) {
      const started = Date.now();
      const told = await runProgram(program, [], environment);
      const seconds = (Date.now() - started) / 1000;
      outcomes.push({ program, told, seconds });
      const counts = `${told.passed} passed, ${told.failed.length} failed`;
      print(`${told.problem === undefined ? "ok" : "FAILED"}  ${program.name}  ${counts}  ${seconds.toFixed(1)} s`);
      if (told.problem !== undefined) for (const line of told.lines) print(line);
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));

  const failures = outcomes.flatMap(({ program, told }) =>
    told.failed.map((test) => ({ program, test, name: `${program.name} ${test}`, why: outputOf(test, told.lines) })),
  );
  const flaky: string[] = [];
  for (const { program, test, name } of failures.length <= MOST_RERUN ? failures : []) {
    print(`Once more, alone: ${name}`);
    const again = await runProgram(program, ["--exact", test], environment);
    if (again.problem === undefined && again.passed === 1) flaky.push(name);
    else for (const line of again.lines) print(line);
  }
  await keepSeconds(outcomes.map(({ program, seconds }) => ({ file: program.name, seconds })));
  const { passed } = outcomes.reduce((total, { told }) => ({ passed: total.passed + told.passed }), { passed: 0 });
  // A program that crashed or hung counts as one failure beside its failed tests: some of its tests did not run.
  const broken = outcomes.filter(
    ({ told }) => told.problem !== undefined && (told.failed.length === 0 || !told.isWhole),
  );
  const notes = broken.map(({ program, told }) => `${program.name}: ${told.problem}`);
  return {
    passed: passed + flaky.length,
    failed: failures.length - flaky.length + broken.length,
    flaky,
    failures: [
      ...failures.flatMap(({ name, why }) => (flaky.includes(name) ? [] : [failureOf(name, why)])),
      ...notes.map((note) => failureOf(note)),
    ],
    ...(notes.length > 0 ? { note: notes.join("; ") } : {}),
    files: outcomes.map(({ program, seconds }) => ({ file: program.name, seconds })),
  };
}

/** The outcome of one program; `problem` when it did not end well, `isWhole` when it told of all its tests. */
type Told = { passed: number; failed: string[]; problem: string | undefined; isWhole: boolean; lines: string[] };

async function runProgram(program: TestProgram, args: string[], env: NodeJS.ProcessEnv): Promise<Told> {
  const told: Told = { passed: 0, failed: [], problem: undefined, isWhole: false, lines: [] };
  const ended = new Set<string>();
  const problem = await attempt(() =>
    run(program.executable, args, {
      cwd: program.folder,
      env: { ...env, CARGO_MANIFEST_DIR: program.folder },
      limit: LIMIT_S,
      onLine: (line) => {
        told.lines.push(line);
        if (told.lines.length > 1000) told.lines.shift();
        // A child of a test may have written into the line before it.
        const [, test, how] = /\btest (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)$/.exec(line) ?? [];
        if (test !== undefined) ended.add(test);
        if (test !== undefined && how === "FAILED") told.failed.push(test);
        const [, passed] = /test result: \w+\. (\d+) passed; \d+ failed;/.exec(line) ?? [];
        if (passed === undefined) return;
        told.passed = Number(passed);
        told.isWhole = true;
      },
    }),
  );
  if (problem === undefined) return told;
  const [first = ""] = problem.split("\n", 1);
  if (!first.includes("was ended after")) return { ...told, problem: first };
  const running = (await testNames(program, env)).filter((name) => !ended.has(name));
  return { ...told, problem: `ended after ${LIMIT_S} s; not finished: ${running.join(", ")}` };
}

/** Output of a failed test, from the end of its program's output. */
function outputOf(test: string, lines: readonly string[]): string {
  const start = lines.lastIndexOf(`---- ${test} stdout ----`);
  const rest = start === -1 ? [] : lines.slice(start + 1);
  const end = rest.findIndex((line) => line.startsWith("---- ") || line === "failures:");
  return rest.slice(0, end === -1 ? undefined : end).join("\n");
}

async function testNames(program: TestProgram, env: NodeJS.ProcessEnv): Promise<string[]> {
  const names: string[] = [];
  const onLine = (line: string) => {
    const [, name] = /^(.+): test$/.exec(line) ?? [];
    if (name !== undefined) names.push(name);
  };
  await attempt(() => run(program.executable, ["--list"], { cwd: program.folder, env, onLine, limit: 60 }));
  return names;
}

/** Seconds of each program in the last run on this machine, which decide the order of the next. */
const secondsFile = () => cacheFolder("rust-seconds.json");

async function readSeconds(): Promise<Record<string, number>> {
  if (!existsSync(secondsFile())) return {};
  return z.record(z.string(), z.number()).parse(JSON.parse(await readFile(secondsFile(), "utf8")));
}

async function keepSeconds(times: readonly FileTime[]): Promise<void> {
  const known = { ...(await readSeconds()), ...Object.fromEntries(times.map(({ file, seconds }) => [file, seconds])) };
  await mkdir(cacheFolder(), { recursive: true });
  await writeFile(secondsFile(), JSON.stringify(known));
}
