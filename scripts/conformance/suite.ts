/** A conformance suite's definition, and how its outcomes are counted. */
import { z } from "zod";

export const suiteSchema = z.strictObject({
  title: z.string(),
  /** The oldest Python (`python3`) that its packages are made for. */
  python: z.string().optional(),
  /** The suite whose tests it runs, where it is that suite with other packages. */
  tests: z.string().optional(),
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

/** A run as it is kept in the repository: the counts, the tests that did not pass, and those that do not apply. */
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
  /** With the reason in the suite's own words. */
  notApplicable: z.array(z.strictObject({ test: z.string(), reason: z.string() })).default([]),
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
  const notApplicable: Result["notApplicable"] = [];
  for (const row of outcomes) {
    if (row.outcome === "xfailed" || !applicable(row, patterns)) {
      notApplicable.push({ test: row.test, reason: ownWords(row) });
    } else if (row.outcome !== "passed") {
      const known = suite.reasons.find(({ pattern }) => new RegExp(pattern).test(row.reason));
      notPassed.push({ test: row.test, outcome: row.outcome, ...(known && { reason: known.reason }) });
    }
  }
  return { date, counts: count(outcomes, suite.notApplicable), notPassed, notApplicable };
}

/** Why the suite leaves a test out: in one line, without pytest's word before it. */
function ownWords({ outcome, reason }: Outcomes[number]): string {
  if (outcome === "xfailed") return "expected to fail";
  const words = reason.replace(/^Skipped(: |$)/, "").trim();
  return words === "" ? "switched off without a reason" : words.replaceAll(/\s+/g, " ");
}

/** How much of what applies passed, in percent. */
export function share({ collected, not_applicable, passed }: Counts): number {
  return (passed / Math.max(1, collected - not_applicable)) * 100;
}

/** What a part or a repetition told takes the place of what was told of the same tests before. */
export function merged(before: Outcomes, ran: Outcomes): Outcomes {
  return [...new Map([...before, ...ran].map((row) => [row.test, row])).values()];
}

const MARKS = ["<!-- not passed: written by --record -->", "<!-- end -->"] as const;

/** The page with the list of a result's tests by reason between its marks. */
export function withListing(page: string, { date, counts, notPassed, notApplicable }: Result): string {
  const [begin, end] = MARKS;
  const [before, rest] = page.split(begin);
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined) throw new Error(`The page has no marks ${begin} … ${end}.`);
  const failing = notPassed.map(({ test, outcome, reason }) => ({
    reason: reason ?? "not looked at",
    line: `- ${outcome === "skipped" ? "skipped: " : ""}\`${test}\``,
  }));
  const leftOut = notApplicable.map(({ test, reason }) => ({ reason, line: `- \`${test}\`` }));
  const { collected, not_applicable, passed, failed, skipped } = counts;
  const sums =
    `${date}: ${collected} tests, ${not_applicable} not applicable, ${passed} passed (${share(counts).toFixed(1)} % of ` +
    `the applicable), ${failed} failed, ${skipped} skipped.`;
  const listings = [byReason(failing)];
  if (leftOut.length > 0) listings.push("## Not applicable, in the suite's words\n", byReason(leftOut));
  return `${before}${begin}\n\n${sums}\n\n${listings.join("\n")}\n${end}${after}`;
}

/** The reason that most have comes first. */
function byReason(rows: { reason: string; line: string }[]): string {
  const lines = new Map<string, string[]>();
  for (const { reason, line } of rows) lines.set(reason, [...(lines.get(reason) ?? []), line]);
  return [...lines]
    .sort((a, b) => b[1].length - a[1].length)
    .map(([reason, those]) => `### ${those.length}: ${reason}\n\n${those.join("\n")}\n`)
    .join("\n");
}
