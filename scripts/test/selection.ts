/**
 * Which suites a change needs. `.ci/verified` names a tree that `npm run verify` has passed whole; of a suite whose
 * files have not changed since, only its smoke runs.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { z } from "zod";
import { type Scope, SUITE_NAMES, type SuiteName } from "#scripts/test/plan.ts";

export const VERIFIED_FILE = ".ci/verified";

/** Never an option of git. */
const hash = z.string().regex(/^[0-9a-f]{40}$/);

/** The record is not signed: anybody who can commit can write one. */
export const verifiedSchema = z.object({
  /** Git's hash of the tree that passed, without `.ci/verified` itself. */
  tree: hash,
  /** The commit with that tree, an ancestor of each commit that relies on it. */
  commit: hash,
  date: z.iso.date(),
  cpu: z.string(),
  minutes: z.number(),
  passed: z.int(),
});

/** Files that no test reads and no build contains. */
const NO_SUITE = [/^native\/.*\.md$/, /^LICENSE$/];

/** Files that run the suites, or decide what is installed for them: a mistake there can hide a failure of any suite. */
const RUNNER = /^(scripts\/(test\/|ci\.mjs$|bootstrap\.mjs$|patch-postgres\.mjs$)|package(-lock)?\.json$|\.gitignore$)/;

/** What of `native/` goes into the programs and the wheel: not the tests of it. */
const NATIVE_PRODUCT = /^native\/(?!(conformance|xtask|testing)\/|[^/]+\/tests\/)/;

/** Sources of the portal and of the control plane's image. */
const PORTAL = /^((app|components|server|drizzle|examples)\/|[^/]+\.(ts|mjs|json)$)/;

/** Files whose change can change what a suite finds. A file that matches no suite and is not in `NO_SUITE` is for all. */
const AREAS: Record<SuiteName, readonly RegExp[]> = {
  rust: [/^native\/(?!python\/)/],
  pytest: [
    NATIVE_PRODUCT,
    /^native\/(python|conformance\/(src|plugins))\//,
    /^native\/conformance\/Cargo\.toml$/,
    /^README\.md$/,
  ],
  vitest: [
    PORTAL,
    /^(scripts|bench|docs|deploy|e2e)\//,
    NATIVE_PRODUCT,
    /^native\/conformance\/(suites|cuda)\//,
    // Tests read the documents: links, settings and commands that they name.
    /^[^/]+\.md$/,
  ],
  playwright: [
    PORTAL,
    /^e2e\//,
    NATIVE_PRODUCT,
    /^native\/python\/tests\/run_notebooks\.py$/,
    /^scripts\/(start|lib|demo|pictures)(\/|\.mjs$)/,
  ],
  cluster: [
    PORTAL,
    /^(deploy|e2e\/fixtures)\//,
    /^docs\/operators\//,
    NATIVE_PRODUCT,
    /^scripts\/(cluster|images|start|lib)(\/|\.mjs$)/,
  ],
};

/** The scope of every suite for these changed files; `undefined` means that any file may have changed. */
export function selectSuites(changed: readonly string[] | undefined): Map<SuiteName, Scope> {
  const files = changed?.filter((file) => !NO_SUITE.some((pattern) => pattern.test(file)));
  const concerns = (suite: SuiteName, file: string) =>
    RUNNER.test(file) || AREAS[suite].some((pattern) => pattern.test(file));
  const isForAll = (file: string) => !SUITE_NAMES.some((suite) => concerns(suite, file));
  const scope = (suite: SuiteName): Scope =>
    files === undefined || files.some((file) => concerns(suite, file) || isForAll(file)) ? "all" : "smoke";
  return new Map(SUITE_NAMES.map((suite) => [suite, scope(suite)]));
}

/** The files that differ from the tree that was verified, or why that is not known. */
export function changedSinceVerified(root: string): { changed: string[]; since: string } | { unknown: string } {
  const file = path.join(root, VERIFIED_FILE);
  if (!existsSync(file)) return { unknown: `${VERIFIED_FILE} is missing` };
  const parsed = verifiedSchema.safeParse(parseJson(readFileSync(file, "utf8")));
  if (!parsed.success) return { unknown: `${VERIFIED_FILE} has another form` };
  const { tree, commit } = parsed.data;
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: "pipe", maxBuffer: 1 << 28 }).trim();
  try {
    git("merge-base", "--is-ancestor", commit, "HEAD");
  } catch {
    return { unknown: `the commit ${commit.slice(0, 12)} is none of this history` };
  }
  if (treeWithoutRecord(root, commit) !== tree) return { unknown: `the tree of ${commit.slice(0, 12)} is another` };
  const lines = (text: string) => text.split("\n").filter((line) => line !== "");
  const changed = lines(git("diff", "--name-only", "--no-renames", "--ignore-submodules=none", commit));
  const added = lines(git("ls-files", "--others", "--exclude-standard"));
  const files = [...changed, ...added].filter((name) => name !== VERIFIED_FILE);
  return { changed: files, since: commit };
}

/** Parsed JSON; undefined for other text, such as a merge conflict. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Git's hash of a commit's tree without the record of its verification. */
export function treeWithoutRecord(root: string, commit: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-index-"));
  try {
    const env = { ...process.env, GIT_INDEX_FILE: path.join(folder, "index") };
    const git = (...args: string[]) => execFileSync("git", args, { cwd: root, env, encoding: "utf8", stdio: "pipe" });
    git("read-tree", commit);
    git("rm", "--cached", "--quiet", "--ignore-unmatch", VERIFIED_FILE);
    return git("write-tree").trim();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
