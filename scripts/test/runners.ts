/** Each runner of `npm test`: how it is called, and how its counts are read from what it reports. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { stripVTControlCharacters } from "node:util";
import { installChromium } from "#scripts/lib/chromium.ts";
import { attempt, run } from "#scripts/lib/processes.ts";
import { buildPortal } from "#scripts/start/builds.ts";
import { buildEnvironment } from "#scripts/test/environment.ts";
import type { Result } from "#scripts/test/result.ts";
import { vitestCounts, vitestWords } from "#scripts/test/vitest.ts";

export type Runner = {
  name: string;
  /** Seconds it may take from cold caches on two cores. */
  budget: number;
  /** Installs what it needs, which mostly waits for the network: begun beside the build, awaited before `run`. */
  prepare?: (root: string, out: string) => Promise<void>;
  /** Builds what it needs beside the suites before it, which leave cores idle; awaited as well. */
  buildAhead?: (root: string, out: string) => Promise<void>;
  run: (root: string, out: string) => Promise<Omit<Result, "name" | "seconds">>;
};

const print = (line: string) => console.log(line);

/** Seconds after which a suite whose tests have no limit of their own is ended: one of them hangs. */
const limitOf = (runner: Runner) => 3 * runner.budget;

const firstLine = (text: string) => text.split("\n", 1)[0];

export const vitest: Runner = {
  name: "vitest",
  budget: 300,
  // The installations of the journeys take it over (e2e/fixtures/global-setup.ts).
  buildAhead: async (root, out) => await buildEnvironment(root, out, () => undefined),
  run: async (root, out) => {
    const report = path.join(out, "vitest.json");
    const flaky: string[] = [];
    const onLine = (line: string) => {
      const plain = stripVTControlCharacters(line).trim();
      if (/\(retry x\d+\)/.test(plain)) flaky.push(plain);
      print(line);
    };
    const words = vitestWords(report, "--reporter=default");
    const problem = await attempt(() => run(process.execPath, words, { cwd: root, env: process.env, onLine }));
    const counts = vitestCounts(report, problem !== undefined);
    return counts === undefined ? { passed: 0, failed: 1, note: problem ?? "no report" } : { ...counts, flaky };
  },
};

/** `cargo test` prints one line a test binary: `test result: ok. N passed; N failed; …`. */
export const cargo: Runner = {
  name: "cargo",
  // 75 of them to compile the CUDA programs of native/conformance, which are kept.
  budget: 510,
  // A test that finds no compiler fetches it itself, and says why it cannot.
  prepare: async (root) => {
    await attempt(() => run("python3", [path.join(root, "native/conformance/cuda/toolkit.py")], { onLine: print }));
  },
  run: async (root) => {
    const cwd = path.join(root, "native");
    // The programs were built before; tests that start them need not ask cargo again.
    const env = {
      ...process.env,
      CARGO_TERM_COLOR: "never",
      SLUICE_NATIVE_DIR: path.join(root, "native", "target", "release"),
    };
    let passed = 0;
    let failed = 0;
    const failures: string[] = [];
    const command = ["test", "--release", "--locked", "--workspace", "--no-fail-fast"];
    const problem = await attempt(() =>
      run("cargo", command, {
        cwd,
        env,
        limit: limitOf(cargo),
        onLine: (line) => {
          const failure = /^test (.+) \.\.\. FAILED$/.exec(line)?.[1];
          if (failure !== undefined) failures.push(failure);
          const counts = /^test result: \w+\. (\d+) passed; (\d+) failed;/.exec(line);
          if (counts !== null) {
            passed += Number(counts[1]);
            failed += Number(counts[2]);
          }
          if (!/ \.\.\. ok$/.test(line)) print(line);
        },
      }),
    );
    if (problem !== undefined && failed === 0) return { passed, failed: 1, note: firstLine(problem) };
    const flaky: string[] = [];
    // Each once more, alone. More than a few are no accident of timing.
    for (const test of failures.length <= 3 ? failures : []) {
      console.log(`\nOnce more: ${test}`);
      const words = [...command, "--", "--exact", test];
      const again = await attempt(() => run("cargo", words, { cwd, env, limit: limitOf(cargo), onLine: print }));
      if (again === undefined) flaky.push(test);
    }
    return { passed: passed + flaky.length, failed: failed - flaky.length, flaky };
  },
};

export const pytest: Runner = {
  name: "pytest",
  budget: 120,
  prepare: async (root, out) => {
    const wanted = readFileSync(path.join(root, "native/python/tests/requirements.txt"), "utf8");
    // Written last: an environment whose making was interrupted is made anew, and so is one for other packages.
    const installed = path.join(testVenv(out), "installed.txt");
    if (existsSync(installed) && readFileSync(installed, "utf8") === wanted) return;
    await run("python3", ["-m", "venv", "--clear", testVenv(out)], { onLine: print });
    await run(testPython(out), ["-m", "pip", "install", "-q", "-r", "native/python/tests/requirements.txt"], {
      cwd: root,
      onLine: print,
    });
    writeFileSync(installed, wanted);
  },
  run: async (root, out) => {
    let passed = 0;
    let failed = 0;
    const problem = await attempt(() =>
      run(testPython(out), ["-m", "pytest", "-q", "-p", "no:cacheprovider", "native/python/tests"], {
        cwd: root,
        env: { ...process.env, SLUICE_NATIVE_DIR: path.join(root, "native", "target", "release") },
        limit: limitOf(pytest),
        onLine: (line) => {
          print(line);
          if (/\b\d+ (passed|failed|error)/.test(line) && / in [\d.]+s/.test(line)) {
            passed = Number(/(\d+) passed/.exec(line)?.[1] ?? 0);
            failed = Number(/(\d+) failed/.exec(line)?.[1] ?? 0) + Number(/(\d+) errors?/.exec(line)?.[1] ?? 0);
          }
        },
      }),
    );
    if (problem !== undefined && failed === 0) return { passed, failed: 1, note: firstLine(problem) };
    return { passed, failed };
  },
};

/** A virtual environment with pytest and what the package's tests import. */
const testVenv = (out: string) => path.join(out, "venv");
const testPython = (out: string) => path.join(testVenv(out), "bin", "python");

type Suite = { specs?: { title: string; tests: { status: string }[] }[]; suites?: Suite[] };

export const playwright: Runner = {
  name: "playwright",
  budget: 600,
  prepare: async () => await installChromium(print),
  buildAhead: async (root) => {
    const env = { ...process.env, NODE_ENV: "production" as const, NEXT_TELEMETRY_DISABLED: "1" };
    await buildPortal(root, env, () => undefined, { background: true });
  },
  run: async (root, out) => {
    const report = path.join(out, "e2e.json");
    mkdirSync(path.dirname(report), { recursive: true });
    const problem = await attempt(() =>
      run(process.execPath, ["node_modules/@playwright/test/cli.js", "test"], {
        cwd: root,
        env: { ...process.env, SLUICE_E2E_REPORT: report },
        onLine: print,
      }),
    );
    if (!existsSync(report)) return { passed: 0, failed: 1, note: "no report" };
    const tests = outcomes(JSON.parse(readFileSync(report, "utf8")) as Suite);
    const flaky = tests.filter((test) => test.status === "flaky").map((test) => test.title);
    const passed = tests.filter((test) => test.status === "expected").length + flaky.length;
    const failed = tests.filter((test) => test.status === "unexpected").length;
    return { passed, failed: problem !== undefined && failed === 0 ? 1 : failed, flaky };
  },
};

function outcomes(suite: Suite): { title: string; status: string }[] {
  const own = (suite.specs ?? []).flatMap((spec) => spec.tests.map(({ status }) => ({ title: spec.title, status })));
  return [...own, ...(suite.suites ?? []).flatMap(outcomes)];
}
