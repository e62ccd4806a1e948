/** What `.ci/run` runs: the checks that need no running product, then `npm test`. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { RESULT_FILE } from "#scripts/test/result.ts";

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

rmSync(RESULT_FILE, { force: true });
// The fuzzers play for a minute here, and for seconds in `npm test`.
const env = { SLUICE_FUZZ_SECONDS: "60", ...process.env };
const tests = spawnSync(process.execPath, ["scripts/test.mjs"], { stdio: "inherit", env });
const counts = existsSync(RESULT_FILE)
  ? (JSON.parse(readFileSync(RESULT_FILE, "utf8")) as { passed: number; failed: number })
  : { passed: 0, failed: 1 };
if (failed.length > 0) console.log(`Checks that failed: ${failed.join(", ")}`);
const passedChecks = CHECKS.length - failed.length;
console.log(`${counts.passed + passedChecks} passed, ${counts.failed + failed.length} failed`);
process.exit(failed.length > 0 || tests.status !== 0 ? 1 : 0);
