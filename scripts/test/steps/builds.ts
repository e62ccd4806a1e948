/** Builds and downloads that suites wait for. Each is kept outside the checkout by its content, or takes no time when fresh. */
import { existsSync } from "node:fs";
import path from "node:path";
import { keepFolder, takeFolder } from "#scripts/lib/cache.mjs";
import { installChromium } from "#scripts/lib/chromium.ts";
import { keepNativeBuild } from "#scripts/lib/native-cache.mjs";
import { attempt, run } from "#scripts/lib/processes.ts";
import { buildNativeForTests, buildPortal, portalFingerprint } from "#scripts/start/builds.ts";
import { buildEnvironment } from "#scripts/test/environment.ts";
import type { Print, Step } from "#scripts/test/step.ts";
import { preparePytest } from "#scripts/test/steps/pytest.ts";
import { compileRustTests } from "#scripts/test/steps/rust.ts";

type Build = { after?: string[]; cores: number; work: (root: string, out: string, print: Print) => Promise<void> };

const BUILDS = {
  "Python packages": { cores: 0, work: async (root, _out, print) => await preparePytest(root, print) },
  browser: { cores: 0, work: async (_root, _out, print) => await installChromium(print) },
  // A test that finds no compiler fetches it itself, and says why it cannot.
  "CUDA compiler": {
    cores: 0,
    work: async (root, _out, print) => {
      await attempt(() => run("python3", [path.join(root, "native/conformance/cuda/toolkit.py")], { onLine: print }));
    },
  },
  "native programs": {
    cores: 1,
    work: async (root, _out, print) => {
      await buildNativeForTests(root, print);
      keepNativeBuild(root, "programs");
    },
  },
  portal: { cores: 1, work: async (root) => await portal(root) },
  "workspace environment": {
    after: ["native programs"],
    cores: 1,
    work: async (root, out) => await buildEnvironment(root, out, () => undefined),
  },
  "Rust tests compiled": {
    after: ["native programs"],
    cores: 1,
    work: async (root, out, print) => {
      await compileRustTests(root, out, print);
      keepNativeBuild(root, "tests");
    },
  },
} satisfies Record<string, Build>;

export type BuildName = keyof typeof BUILDS;

/** The steps of these names, in the order in which they are best started. */
export function buildSteps(root: string, out: string, names: readonly BuildName[]): Step[] {
  return Object.entries<Build>(BUILDS)
    .filter(([name]) => names.includes(name as BuildName))
    .map(([name, { after, cores, work }]) => ({
      ...{ name, kind: "build", cores, ...(after === undefined ? {} : { after }) },
      run: async (print) => {
        await work(root, out, print);
        return undefined;
      },
    }));
}

/** The portal's production build: taken from the cache when another checkout built the same sources. */
async function portal(root: string): Promise<void> {
  const folder = path.join(root, ".next");
  const key = (await portalFingerprint(root)).slice(0, 16);
  if (!existsSync(folder)) takeFolder("portal", key, folder);
  const env = { ...process.env, NODE_ENV: "production" as const, NEXT_TELEMETRY_DISABLED: "1" };
  const outcome = await buildPortal(root, env, () => undefined, { background: true });
  if (outcome === "built") keepFolder("portal", key, folder);
}
