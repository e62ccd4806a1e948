/** A conformance suite's definition, and how its outcomes are counted. */
import { z } from "zod";

export const suiteSchema = z.strictObject({
  title: z.string(),
  /** What pip installs, versions pinned. */
  requirements: z.array(z.string()),
  /** A Python program that builds a wheel (`--cache FOLDER`, prints its path), which is installed with them. */
  build: z.string().optional(),
  /** Whether pip adds what they depend on; without, all that is wanted is listed. */
  withDependencies: z.boolean().default(true),
  /** The lease's memory. */
  memoryBytes: z.int().positive(),
  /** Arguments of pytest, in the suite's folder. */
  pytest: z.array(z.string()),
  /** Reasons (regular expressions) with which the suite itself skips a test on a real card of compute capability 7.5. */
  notApplicable: z.array(z.string()).default([]),
});
export type Suite = z.infer<typeof suiteSchema>;

export const outcomesSchema = z.array(
  z.strictObject({ test: z.string(), outcome: z.enum(["passed", "failed", "skipped", "xfailed"]), reason: z.string() }),
);
export type Outcomes = z.infer<typeof outcomesSchema>;

export type Counts = { collected: number; not_applicable: number; passed: number; failed: number; skipped: number };

/** A run as it is kept in the repository: the counts, and the tests that are applicable and did not pass. */
export const resultSchema = z.strictObject({
  date: z.iso.date(),
  counts: z.strictObject({
    collected: z.int(),
    not_applicable: z.int(),
    passed: z.int(),
    failed: z.int(),
    skipped: z.int(),
  }),
  notPassed: z.array(z.strictObject({ test: z.string(), outcome: z.enum(["failed", "skipped"]) })),
});
export type Result = z.infer<typeof resultSchema>;

/** A test that the suite expects to fail fails on a real card too: it is not applicable, like one skipped for the card. */
function applicable({ outcome, reason }: Outcomes[number], patterns: RegExp[]): boolean {
  if (outcome === "xfailed") return false;
  return outcome !== "skipped" || !patterns.some((pattern) => pattern.test(reason));
}

export function count(outcomes: Outcomes, notApplicable: string[]): Counts {
  const patterns = notApplicable.map((pattern) => new RegExp(pattern));
  const counts: Counts = { collected: outcomes.length, not_applicable: 0, passed: 0, failed: 0, skipped: 0 };
  for (const row of outcomes) {
    if (row.outcome === "xfailed" || !applicable(row, patterns)) counts.not_applicable += 1;
    else counts[row.outcome] += 1;
  }
  return counts;
}

export function result(date: string, outcomes: Outcomes, notApplicable: string[]): Result {
  const patterns = notApplicable.map((pattern) => new RegExp(pattern));
  const notPassed: Result["notPassed"] = [];
  for (const row of outcomes) {
    if (row.outcome === "passed" || row.outcome === "xfailed" || !applicable(row, patterns)) continue;
    notPassed.push({ test: row.test, outcome: row.outcome });
  }
  return { date, counts: count(outcomes, notApplicable), notPassed };
}
