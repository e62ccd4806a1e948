/** What `.ci/run` runs: the fast checks, then `npm test`, then the slow checks beside the tests on a cluster. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { attempt, run } from "#scripts/lib/processes.ts";
import { CLUSTER_RESULT_FILE, RESULT_FILE } from "#scripts/test/result.ts";

type Check = { name: string; command: [string, ...string[]]; cwd?: string };

const bin = (name: string) => `node_modules/.bin/${name}`;
const CARGO = { cwd: "native" };
const FAST: Check[] = [
  { name: "format and fast lint", command: [bin("biome"), "ci", "."] },
  {
    name: "layers",
    command: [bin("depcruise"), "--config", ".dependency-cruiser.cjs", "app", "components", "server", "scripts"],
  },
  { name: "types", command: [bin("tsc"), "--noEmit"] },
  { name: "generated contracts are fresh", command: [process.execPath, "scripts/generate.ts", "--check"] },
  { ...CARGO, name: "Rust format", command: ["cargo", "fmt", "--all", "--check"] },
  {
    ...CARGO,
    name: "generated API is fresh",
    command: ["cargo", "run", "--release", "--locked", "-q", "-p", "sluice-xtask", "--", "generate", "--check"],
  },
];
/** Beside the tests on a cluster, which mostly wait. */
const SLOW: Check[] = [
  {
    ...CARGO,
    name: "Rust lint",
    command: ["cargo", "clippy", "--release", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"],
  },
  { name: "lint", command: [bin("eslint"), "."] },
];

const fast = await checkInTurn(FAST);
// The fuzzers play for a minute here, and for seconds in `npm test`.
const tests = await suite("scripts/test.mjs", RESULT_FILE, { SLUICE_FUZZ_SECONDS: "60" });
const [slow, cluster] = await Promise.all([checkInTurn(SLOW), suite("scripts/cluster.mjs", CLUSTER_RESULT_FILE)]);
const failed = [...fast, ...slow];
const checks = { passed: FAST.length + SLOW.length - failed.length, failed: failed.length };
if (failed.length > 0) console.log(`Checks that failed: ${failed.join(", ")}`);
const sum = (name: keyof Counts) => [tests, cluster, checks].reduce((total, one) => total + one[name], 0);
console.log(`${sum("passed")} passed, ${sum("failed")} failed`);
process.exit(sum("failed") > 0 ? 1 : 0);

/** Runs checks one after the other, each printed whole at its end; returns the names of those that failed. */
async function checkInTurn(checks: Check[]): Promise<string[]> {
  const failed: string[] = [];
  for (const { name, command, cwd } of checks) {
    const started = Date.now();
    console.log(`…  ${name}`);
    const lines: string[] = [];
    const [program, ...args] = command;
    const options = { cwd: cwd ?? ".", background: true, onLine: (line: string) => lines.push(line) };
    const problem = await attempt(() => run(program, args, options));
    if (problem !== undefined) failed.push(name);
    const seconds = ((Date.now() - started) / 1000).toFixed(0);
    const outcome = `${problem === undefined ? "ok" : "FAILED"}  ${name}  ${seconds} s`;
    console.log(["", `== ${name} ==`, ...lines, ...(problem?.split("\n", 1) ?? []), outcome].join("\n"));
  }
  return failed;
}

type Counts = { passed: number; failed: number };

/** Runs a script and gives what it left in `file`; one that fails without a failure there counts as one. */
async function suite(script: string, file: string, env: Record<string, string> = {}): Promise<Counts> {
  rmSync(file, { force: true });
  const started = Date.now();
  console.log(`\n== ${script} ==`);
  const child = spawn(process.execPath, [script], { stdio: "inherit", env: { ...env, ...process.env } });
  const status = await new Promise((resolve) => child.once("close", resolve));
  console.log(`${script}: ${((Date.now() - started) / 1000).toFixed(0)} s`);
  const told = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Counts) : { passed: 0, failed: 0 };
  return status !== 0 && told.failed === 0 ? { ...told, failed: 1 } : told;
}
