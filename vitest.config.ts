import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { defineConfig } from "vitest/config";

/**
 * What a test file changes for its whole process: environment, mocks, clock, child processes, servers. Such a file gets
 * a process of its own. All others share one process per worker, which imports each module once: importing the module
 * graph anew takes a file of services about two seconds of CPU time. They keep apart by a database per file.
 */
const CHANGES_ITS_PROCESS = [
  /process\.(env|kill|on|chdir)|resetEnv|globalThis|@vitest-environment/,
  /vi\.(mock|hoisted|stub|spyOn|useFakeTimers|resetModules)/,
  /spawn|execFile|createServer|LocalLauncher|makeTestState|startEmbeddedPostgres|start(Broker|Gateway|Reconciler)/,
];
/** Everything there is pure or works on a database that it is given. */
const SHARING_FOLDERS = ["components", "server"];

const sharing = SHARING_FOLDERS.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.test\.tsx?$/.test(name))
    .map((name) => path.join(folder, name)),
).filter((file) => {
  const text = readFileSync(file, "utf8");
  return !CHANGES_ITS_PROCESS.some((pattern) => pattern.test(text));
});

const common = {
  testTimeout: 30_000,
  hookTimeout: 60_000,
  // A test that passes only at its second try is named at the end of the run.
  retry: 1,
  // Tests run many workspaces that do little; the limits have tests of their own.
  env: {
    SLUICE_LOG_LEVEL: "silent",
    SLUICE_RUNNING_WORKSPACES: "1000",
    SLUICE_LOCAL_MEMORY_GIB: "1000",
    SLUICE_LEASE_REQUESTS_PER_MINUTE: "100000",
  },
  alias: { "@node-rs/argon2": path.resolve("server/auth/testing-argon2.ts") },
};

export default defineConfig({
  test: {
    // Once per run, whichever projects it has.
    globalSetup: ["server/db/testing-global-setup.ts"],
    // Two cores: more workers only wait for one another.
    maxWorkers: 2,
    projects: [
      { test: { ...common, name: "shared", include: sharing, isolate: false } },
      {
        test: {
          ...common,
          name: "isolated",
          include: ["{app,bench,components,e2e,scripts,server}/**/*.test.{ts,tsx}"],
          exclude: sharing,
        },
      },
    ],
  },
});
