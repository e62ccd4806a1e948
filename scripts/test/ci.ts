/**
 * `.ci/run`: every check, and the suites that the changes since the last verified tree concern; of the others a smoke.
 * `SLUICE_CI_ALL=1` runs everything.
 */
import path from "node:path";
import { quickChecks, type Scope, slowChecks, suiteSteps } from "#scripts/test/plan.ts";
import { endWith, runCommand } from "#scripts/test/run-steps.ts";
import { changedSinceVerified, selectSuites } from "#scripts/test/selection.ts";

const root = process.cwd();
const setting = { root, out: path.join(root, ".sluice", "test") };
const found = process.env.SLUICE_CI_ALL === "1" ? { unknown: "SLUICE_CI_ALL is set" } : changedSinceVerified(root);
const scopes = selectSuites("changed" in found ? found.changed : undefined);
const named = (scope: Scope) => [...scopes].filter(([, one]) => one === scope).map(([name]) => name);
if ("unknown" in found) console.log(`Every suite runs: ${found.unknown}.`);
else {
  console.log(
    `${found.changed.length} files differ from ${found.since.slice(0, 12)}, which npm run verify has passed.`,
  );
  console.log(`Whole suites: ${named("all").join(", ") || "none"}.`);
  console.log(`Left out but for a smoke: ${named("smoke").join(", ") || "none"}.`);
}
endWith(await runCommand(root, ".ci/run", [...suiteSteps(setting, scopes), ...quickChecks, ...slowChecks]));
