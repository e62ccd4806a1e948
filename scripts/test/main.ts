/**
 * `npm test`: every suite that needs no cluster, from a clean checkout, with one closing line. Names as arguments
 * (`npm test -- vitest`) run only those suites.
 */
import path from "node:path";
import { SUITE_NAMES, type SuiteName, suiteSteps } from "#scripts/test/plan.ts";
import { endWith, runCommand } from "#scripts/test/run-steps.ts";

const root = process.cwd();
const offered: SuiteName[] = SUITE_NAMES.filter((name) => name !== "cluster");
const words = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const unknown = words.filter((word) => !offered.some((name) => name === word));
if (unknown.length > 0) {
  console.error(`No suite is named ${unknown.join(", ")}. Choose from: ${offered.join(", ")}.`);
  process.exit(2);
}
const wanted = offered.filter((name) => words.length === 0 || words.includes(name));
const setting = { root, out: path.join(root, ".sluice", "test") };
const steps = suiteSteps(setting, new Map(wanted.map((name) => [name, "all"])));
endWith(await runCommand(root, ["npm test", ...words].join(" "), steps));
