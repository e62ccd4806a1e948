/** What `.ci/run` runs: the checks that need no running product, then `npm test`, then the tests on a cluster. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { CLUSTER_RESULT_FILE, RESULT_FILE } from "#scripts/test/result.ts";

type Check = { name: string; command: [string, ...string[]]; cwd?: string };

const bin = (name: string) => `node_modules/.bin/${name}`;
const CHECKS: Check[] = [
  { name: "format and fast lint", command: [bin("biome"), "ci", "."] },
  { name: "lint", command: [bin("eslint"), "."] },
  {
    name: "layers",
    command: [bin("depcruise"), "--config", ".dependency-cruiser.cjs", "app", "components", "server", "scripts"],
  },
  { name: "types", command: [bin("tsc"), "--noEmit"] },
  { name: "generated contracts are fresh", command: [process.execPath, "scripts/generate.ts", "--check"] },
  { name: "Rust format", command: ["cargo", "fmt", "--all", "--check"], cwd: "native" },
  {
    name: "Rust lint",
    command: ["cargo", "clippy", "--release", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"],
    cwd: "native",
  },
  {
    name: "generated API is fresh",
    command: ["cargo", "run", "--release", "--locked", "-q", "-p", "sluice-xtask", "--", "generate", "--check"],
    cwd: "native",
  },
];

const failed: string[] = [];
for (const check of CHECKS) {
  const started = Date.now();
  const [command, ...args] = check.command;
  console.log(`\n== ${check.name} ==`);
  const result = spawnSync(command, args, { cwd: check.cwd ?? ".", stdio: "inherit" });
  const seconds = ((Date.now() - started) / 1000).toFixed(0);
  if (result.status !== 0) failed.push(check.name);
  console.log(`${result.status === 0 ? "ok" : "FAILED"}  ${check.name}  ${seconds} s`);
}

// The fuzzers play for a minute here, and for seconds in `npm test`.
const counts = [
  suite("scripts/test.mjs", RESULT_FILE, { SLUICE_FUZZ_SECONDS: "60" }),
  suite("scripts/cluster.mjs", CLUSTER_RESULT_FILE),
  { passed: CHECKS.length - failed.length, failed: failed.length },
];
if (failed.length > 0) console.log(`Checks that failed: ${failed.join(", ")}`);
const sum = (name: keyof Counts) => counts.reduce((total, one) => total + one[name], 0);
console.log(`${sum("passed")} passed, ${sum("failed")} failed`);
process.exit(sum("failed") > 0 ? 1 : 0);

type Counts = { passed: number; failed: number };

/** Runs a script and gives what it left in `file`; one that fails without a failure there counts as one. */
function suite(script: string, file: string, env: NodeJS.ProcessEnv | Record<string, string> = {}): Counts {
  rmSync(file, { force: true });
  const started = Date.now();
  console.log(`\n== ${script} ==`);
  const { status } = spawnSync(process.execPath, [script], { stdio: "inherit", env: { ...env, ...process.env } });
  console.log(`${script}: ${((Date.now() - started) / 1000).toFixed(0)} s`);
  const told = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Counts) : { passed: 0, failed: 0 };
  return status !== 0 && told.failed === 0 ? { ...told, failed: 1 } : told;
}
