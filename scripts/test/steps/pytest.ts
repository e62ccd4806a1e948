/** The Python package's tests, in a virtual environment that is kept outside the checkout. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { cacheFolder } from "#scripts/lib/cache.mjs";
import { attempt, run } from "#scripts/lib/processes.ts";
import { failureOf, noReport, withProblem } from "#scripts/test/result.ts";
import type { FileTime, Outcome, Print } from "#scripts/test/step.ts";

const REQUIREMENTS = "native/python/tests/requirements.txt";
/** A test that takes longer is ended, with its stacks. */
const TEST_LIMIT_S = 240;
const LIMIT_S = 1200;

/** The environment for these requirements and this Python: built once for all checkouts. */
async function environmentFolder(root: string): Promise<string> {
  const hash = createHash("sha256").update(await readFile(path.join(root, REQUIREMENTS)));
  await run("python3", ["-c", "import sys; print(sys.executable, sys.version)"], {
    onLine: (line) => hash.update(line),
  });
  return cacheFolder("pytest", hash.digest("hex").slice(0, 16));
}

/** Installs what the tests import. */
export async function preparePytest(root: string, print: Print): Promise<void> {
  const folder = await environmentFolder(root);
  // Written last: an environment whose installation was interrupted is made anew.
  const complete = path.join(folder, "complete");
  if (existsSync(complete)) return;
  await rm(folder, { recursive: true, force: true });
  await mkdir(path.dirname(folder), { recursive: true });
  await run("python3", ["-m", "venv", folder], { onLine: print });
  const words = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", REQUIREMENTS];
  await run(path.join(folder, "bin", "python"), words, { cwd: root, onLine: print });
  await writeFile(complete, "");
}

/** Runs the tests; `only` names files of the folder. */
export async function runPytest(root: string, out: string, print: Print, only: readonly string[]): Promise<Outcome> {
  const python = path.join(await environmentFolder(root), "bin", "python");
  const report = path.join(out, "pytest.xml");
  await rm(report, { force: true });
  const folder = "native/python/tests";
  const tests = only.length > 0 ? only.map((file) => path.join(folder, file)) : [folder];
  const limit = ["--timeout", String(TEST_LIMIT_S)];
  const problem = await attempt(() =>
    run(python, ["-m", "pytest", "-q", "-p", "no:cacheprovider", ...limit, `--junitxml=${report}`, ...tests], {
      cwd: root,
      env: { ...process.env, SLUICE_NATIVE_DIR: path.join(root, "native", "target", "release") },
      limit: LIMIT_S,
      onLine: print,
    }),
  );
  if (!existsSync(report)) return noReport(problem);
  return withProblem(junitOutcome(await readFile(report, "utf8")), problem);
}

/** What pytest's JUnit file tells: counts, and the seconds of each test file. */
export function junitOutcome(xml: string): Outcome & { files: FileTime[] } {
  const text = (element: string, name: string) =>
    (new RegExp(`\\b${name}="([^"]*)"`).exec(element)?.[1] ?? "").replaceAll(ENTITY, entity);
  const number = (element: string, name: string) => Number(text(element, name));
  const [suite = ""] = /<testsuite [^>]*>/.exec(xml) ?? [];
  const failed = number(suite, "failures") + number(suite, "errors");
  const seconds = new Map<string, number>();
  for (const [element] of xml.matchAll(/<testcase [^>]*>/g)) {
    const file = fileOf(text(element, "classname"));
    seconds.set(file, (seconds.get(file) ?? 0) + number(element, "time"));
  }
  const broken = xml.matchAll(/(<testcase [^>]*[^/]>)\s*(<(?:failure|error)\b[^>]*>)/g);
  const failures = [...broken].map(([, test = "", why = ""]) =>
    failureOf(`${fileOf(text(test, "classname"))}.py: ${text(test, "name")}`, text(why, "message")),
  );
  return {
    passed: number(suite, "tests") - failed - number(suite, "skipped"),
    ...{ failed, failures },
    files: [...seconds].map(([file, taken]) => ({ file: `${file}.py`, seconds: taken })),
  };
}

const fileOf = (module: string) => module.split(".").find((part) => part.startsWith("test_")) ?? module;

/** Escaped characters in an attribute of XML. */
const ENTITY = /&(?:#(\d+)|lt|gt|amp|quot|apos);/g;
const entity = (written: string, code?: string) =>
  code === undefined
    ? ({ "&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&apos;": "'" }[written] ?? written)
    : String.fromCodePoint(Number(code));
