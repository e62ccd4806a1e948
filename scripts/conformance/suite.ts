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
  /** Why tests do not pass: the first whose expression is found in what a test said. */
  reasons: z.array(z.strictObject({ pattern: z.string(), reason: z.string() })).default([]),
  /** The page, from the repository's root, that lists them by reason between its marks; `--record` writes the list. */
  page: z.string().optional(),
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
  notPassed: z.array(
    z.strictObject({ test: z.string(), outcome: z.enum(["failed", "skipped"]), reason: z.string().optional() }),
  ),
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

export function result(date: string, outcomes: Outcomes, suite: Pick<Suite, "notApplicable" | "reasons">): Result {
  const patterns = suite.notApplicable.map((pattern) => new RegExp(pattern));
  const notPassed: Result["notPassed"] = [];
  for (const row of outcomes) {
    if (row.outcome === "passed" || row.outcome === "xfailed" || !applicable(row, patterns)) continue;
    const known = suite.reasons.find(({ pattern }) => new RegExp(pattern).test(row.reason));
    notPassed.push({ test: row.test, outcome: row.outcome, ...(known && { reason: known.reason }) });
  }
  return { date, counts: count(outcomes, suite.notApplicable), notPassed };
}

/** What a part or a repetition told takes the place of what was told of the same tests before. */
export function merged(before: Outcomes, ran: Outcomes): Outcomes {
  return [...new Map([...before, ...ran].map((row) => [row.test, row])).values()];
}

const MARKS = ["<!-- not passed: written by --record -->", "<!-- end -->"] as const;

/** The page with the list of a result's tests by reason between its marks. */
export function withListing(page: string, { date, counts, notPassed }: Result): string {
  const [begin, end] = MARKS;
  const [before, rest] = page.split(begin);
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined) throw new Error(`The page has no marks ${begin} … ${end}.`);
  const byReason = new Map<string, Result["notPassed"]>();
  for (const row of notPassed) {
    const reason = row.reason ?? "not looked at";
    byReason.set(reason, [...(byReason.get(reason) ?? []), row]);
  }
  const groups = [...byReason]
    .sort((a, b) => b[1].length - a[1].length)
    .map(([reason, tests]) => {
      const names = tests.map(({ test, outcome }) => `- ${outcome === "skipped" ? "skipped: " : ""}\`${test}\``);
      return `### ${tests.length}: ${reason}\n\n${names.join("\n")}\n`;
    });
  const { collected, not_applicable, passed, failed, skipped } = counts;
  const share = ((passed / Math.max(1, collected - not_applicable)) * 100).toFixed(1);
  const sums =
    `${date}: ${collected} tests, ${not_applicable} not applicable, ${passed} passed (${share} % of the applicable), ` +
    `${failed} failed, ${skipped} skipped.`;
  return `${before}${begin}\n\n${sums}\n\n${groups.join("\n")}\n${end}${after}`;
}
