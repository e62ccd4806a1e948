/** The steps of a test run: checks, builds and suites, in the order of their priority. */
import { availableParallelism } from "node:os";
import type { Step } from "#scripts/test/step.ts";
import { type BuildName, buildSteps } from "#scripts/test/steps/builds.ts";
import { lint, rustChecks, rustLint, typescriptChecks } from "#scripts/test/steps/checks.ts";
import { prepareCluster, runCluster } from "#scripts/test/steps/cluster.ts";
import { runJourneys } from "#scripts/test/steps/journeys.ts";
import { runPytest } from "#scripts/test/steps/pytest.ts";
import { runRustTests } from "#scripts/test/steps/rust.ts";
import { runVitest } from "#scripts/test/steps/vitest.ts";

/**
 * `all`: every test; `smoke`: a few that touch each part of the suite's area; `isolation`: attacks of a hostile notebook,
 * a hostile client of gpud and an anonymous stranger.
 */
export type Scope = "all" | "smoke" | "isolation";

type Suite = {
  builds: readonly BuildName[];
  cores: number;
  run: (setting: Setting, scope: Scope, print: (line: string) => void) => ReturnType<Step["run"]>;
};

export type Setting = {
  root: string;
  /** The folder for reports. */
  out: string;
  /** Seconds that each fuzzer plays; by default those of its test. */
  fuzzSeconds?: number;
};

const SUITES = {
  cluster: {
    builds: ["browser", "native programs", "portal", "workspace environment"],
    // Its files wait for pods about half of the time; checks and pytest fill that.
    cores: 1,
    run: async (_setting, scope, print) => await runCluster(print, scope === "all" ? [] : ["kubernetes.cluster.ts"]),
  },
  rust: {
    builds: ["native programs", "Rust tests compiled", "CUDA compiler"],
    cores: 2,
    run: async ({ root, out, fuzzSeconds }, scope, print) => {
      const env: Record<string, string> = fuzzSeconds === undefined ? {} : { SLUICE_FUZZ_SECONDS: String(fuzzSeconds) };
      const options = { parallel: Math.max(2, availableParallelism()), env };
      return await runRustTests(root, out, print, scope === "all" ? options : { ...options, wanted: RUST[scope] });
    },
  },
  vitest: {
    builds: ["native programs", "workspace environment"],
    cores: 2,
    run: async ({ root, out }, scope, print) => await runVitest(root, out, print, scope === "all" ? [] : VITEST[scope]),
  },
  pytest: {
    builds: ["native programs", "Python packages"],
    cores: 1,
    run: async ({ root, out }, scope, print) =>
      await runPytest(root, out, print, scope === "all" ? [] : ["test_magics.py", "test_text.py"]),
  },
  playwright: {
    builds: ["browser", "native programs", "portal", "workspace environment"],
    // Three installations and their browsers.
    cores: 2,
    run: async ({ root, out }, scope, print) =>
      await runJourneys(root, out, print, scope === "all" ? [] : JOURNEYS_SMOKE),
  },
} satisfies Record<string, Suite>;

export type SuiteName = keyof typeof SUITES;
export const SUITE_NAMES = Object.keys(SUITES) as SuiteName[];

/** Arguments of Playwright for the smoke. Its option takes several projects where their names follow as words. */
export const JOURNEYS_SMOKE = ["--project=journeys", "1-journey"];

/** Programs of the Rust tests. The smoke is some with tests of about a second; the other crates are used by the suites that start their programs. */
export const RUST: Record<Exclude<Scope, "all">, string[]> = {
  smoke: ["api/unit tests", "client/unit tests", "conformance/blocking", "conformance/first_use"],
  isolation: ["gpud/all"],
};
/** Parts of names of Vitest files. The smoke is pure decisions, an operation on the database, and the HTTP handlers. */
export const VITEST: Record<Exclude<Scope, "all">, string[]> = {
  smoke: ["server/scheduler/queue.test.ts", "server/services/lease", "app/api/handlers.test.ts", "scripts/test"],
  isolation: [
    ...["isolation", "sandbox", "confined", "limit-watch", "disk-watch", "bounded-log", "walk-files"].map(
      (name) => `server/launchers/local/${name}.test.ts`,
    ),
    ...["server/egress", "server/jupyter/endpoint", "server/jupyter/server-settings", "server/contracts/linear"],
    ...["server/auth/next-auth", "server/auth/sign-in-limit", "server/http/limit-body", "server/http/bounded-answer"],
    ...["server/broker/hostile-workspaces", "server/broker/control/hostile-gpud", "server/gateway/gateway"],
    ...["packages", "workspace-files", "memory-budget"].map((name) => `server/launchers/local/${name}.test.ts`),
    ...["server/http/connection-limit", "app/api/live-streams", "server/services/lease/queue-limit"],
    ...["app/api/handlers", "server/broker/router", "server/broker/liveness", "server/db/database"],
    ...["server/broker/early-leavers", "server/gateway/early-leavers"],
    ...["server/services/workspace/workspace.test.ts", "server/gateway/hostile-answers", "scripts/start/held-sockets"],
  ],
};

/** `npm test -- isolation`. */
export const ISOLATION: ReadonlyMap<SuiteName, Scope> = new Map([
  ["vitest", "isolation"],
  ["rust", "isolation"],
]);

/** The steps for these suites, each with its scope, and for the builds that they or other steps need. */
export function suiteSteps(
  setting: Setting,
  wanted: ReadonlyMap<SuiteName, Scope>,
  moreBuilds: readonly BuildName[] = [],
): Step[] {
  const names = SUITE_NAMES.filter((name) => wanted.has(name));
  const needed = [...names.flatMap((name) => SUITES[name].builds), ...moreBuilds];
  const builds = buildSteps(setting.root, setting.out, [...new Set(needed)]);
  const suites = names.map((name): Step => {
    const { builds: after, cores, run }: Suite = SUITES[name];
    const scope = wanted.get(name) ?? "all";
    const before = name === "cluster" ? [...after, "cluster parts"] : [...after];
    return { name, kind: "suite", after: before, cores, run: async (print) => await run(setting, scope, print) };
  });
  return [...builds, ...(names.includes("cluster") ? [clusterParts] : []), ...suites];
}

const clusterParts: Step = {
  name: "cluster parts",
  kind: "build",
  // Both install packages of the distribution, one at a time.
  after: ["browser"],
  // Without a cache it compiles for many minutes, at low priority: suites do not wait for a core meanwhile.
  cores: 0,
  run: async (print) => {
    await prepareCluster(print);
    return undefined;
  },
};

/** Every check. They come after the suites in priority: at the start they fill the time until the builds are done. */
export const quickChecks: Step[] = [...typescriptChecks, ...rustChecks];
export const slowChecks: Step[] = [lint, rustLint];
