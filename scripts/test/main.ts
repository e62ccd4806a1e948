/**
 * `npm test`: every suite that needs no cluster, from a clean checkout, with one closing line. Names as arguments
 * (`npm test -- vitest`) run only those suites; `npm test -- isolation` runs the attacks of all of them.
 */
import path from "node:path";
import { ISOLATION, type Scope, SUITE_NAMES, type SuiteName, suiteSteps } from "#scripts/test/plan.ts";
import { endWith, runCommand } from "#scripts/test/run-steps.ts";

const root = process.cwd();
const offered: SuiteName[] = SUITE_NAMES.filter((name) => name !== "cluster");
const words = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const isIsolation = words.length === 1 && words[0] === "isolation";
const unknown = isIsolation ? [] : words.filter((word) => !offered.some((name) => name === word));
if (unknown.length > 0) {
  console.error(`No suite is named ${unknown.join(", ")}. Choose from: ${offered.join(", ")}; or isolation alone.`);
  process.exit(2);
}
const wanted = offered.filter((name) => words.length === 0 || words.includes(name));
const setting = { root, out: path.join(root, ".sluice", "test") };
const suites = new Map(wanted.map((name): [SuiteName, Scope] => [name, "all"]));
const steps = suiteSteps(setting, isIsolation ? ISOLATION : suites);
endWith(await runCommand(root, ["npm test", ...words].join(" "), steps));
