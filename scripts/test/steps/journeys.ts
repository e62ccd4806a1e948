/** Playwright's journeys in a real browser, on installations of their own. */
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { attempt, run } from "#scripts/lib/processes.ts";
import { failureOf, noReport, withProblem } from "#scripts/test/result.ts";
import type { FileTime, Outcome, Print } from "#scripts/test/step.ts";

/** Each test has a limit of its own; this one is for the set-up, which has none. */
const LIMIT_S = 2400;

type Suite = z.infer<typeof suiteSchema>;
const specSchema = z.object({
  title: z.string(),
  file: z.string(),
  tests: z.array(
    z.object({
      status: z.string(),
      results: z
        .array(z.object({ duration: z.number(), error: z.object({ message: z.string().default("") }).optional() }))
        .default([]),
    }),
  ),
});
const suiteSchema = z.object({
  specs: z.array(specSchema).optional(),
  get suites() {
    return z.array(suiteSchema).optional();
  },
});

/** Runs all journeys, or with `args` some. */
export async function runJourneys(root: string, out: string, print: Print, args: readonly string[]): Promise<Outcome> {
  const report = path.join(out, "e2e.json");
  await mkdir(out, { recursive: true });
  await rm(report, { force: true });
  const problem = await attempt(() =>
    run(process.execPath, ["node_modules/@playwright/test/cli.js", "test", ...args], {
      cwd: root,
      env: { ...process.env, SLUICE_E2E_REPORT: report, SLUICE_TEST_BUILT: "1" },
      limit: LIMIT_S,
      onLine: print,
    }),
  );
  if (!existsSync(report)) return noReport(problem);
  const outcome = journeyOutcome(suiteSchema.parse(JSON.parse(readFileSync(report, "utf8"))));
  return withProblem(outcome, problem);
}

/** What Playwright's report tells: counts, flaky tests, and the seconds of each file. */
export function journeyOutcome(report: Suite): Outcome {
  const specs = specsOf(report);
  const tests = specs.flatMap(({ title, file, tests }) => tests.map((test) => ({ title, file, ...test })));
  const count = (wanted: string) => tests.filter(({ status }) => status === wanted).length;
  const seconds = new Map<string, number>();
  for (const { file, results } of tests) {
    const taken = results.reduce((total, { duration }) => total + duration / 1000, 0);
    seconds.set(file, (seconds.get(file) ?? 0) + taken);
  }
  const files: FileTime[] = [...seconds].map(([file, taken]) => ({ file: path.join("e2e", file), seconds: taken }));
  const flaky = tests.filter(({ status }) => status === "flaky").map(({ file, title }) => `${file} > ${title}`);
  const failures = tests
    .filter(({ status }) => status === "unexpected")
    .map(({ file, title, results }) => failureOf(`${file} > ${title}`, results.at(-1)?.error?.message));
  return { passed: count("expected") + flaky.length, failed: count("unexpected"), flaky, failures, files };
}

function specsOf({ specs = [], suites = [] }: Suite): z.infer<typeof specSchema>[] {
  return [...specs, ...suites.flatMap(specsOf)];
}
