/** A conformance suite's definition, and how its outcomes are counted. */
import { z } from "zod";

export const suiteSchema = z.strictObject({
  title: z.string(),
  /** What pip installs, versions pinned. */
  requirements: z.array(z.string()),
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

/** A test that the suite expects to fail fails on a real card too: it is not applicable, like one skipped for the card. */
export function count(outcomes: Outcomes, notApplicable: string[]): Counts {
  const patterns = notApplicable.map((pattern) => new RegExp(pattern));
  const counts: Counts = { collected: outcomes.length, not_applicable: 0, passed: 0, failed: 0, skipped: 0 };
  for (const { outcome, reason } of outcomes) {
    if (outcome === "xfailed") counts.not_applicable += 1;
    else if (outcome !== "skipped") counts[outcome] += 1;
    else if (patterns.some((pattern) => pattern.test(reason))) counts.not_applicable += 1;
    else counts.skipped += 1;
  }
  return counts;
}
