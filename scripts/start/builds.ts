/** The builds that `npm start` makes on first use, each skipped while its inputs are unchanged. */
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { fingerprint, unlessFresh } from "#scripts/lib/fingerprint.ts";
import { EVERYTHING_BUILD, PRODUCT_BUILD } from "#scripts/lib/native-build.mjs";
import { run } from "#scripts/lib/processes.ts";
import { missingTools } from "#scripts/lib/toolchain.ts";
import { wheelIn, wheelPlaces } from "#server/launchers/local/wheel.ts";

type OnLine = (line: string) => void;

const PORTAL_INPUTS = [
  "app",
  "components",
  "server",
  "public",
  "proxy.ts",
  "instrumentation.ts",
  "next.config.ts",
  "postcss.config.mjs",
  "tsconfig.json",
  "package-lock.json",
];

/** The hash of everything that the portal's build reads. */
export async function portalFingerprint(root: string): Promise<string> {
  return await fingerprint(root, PORTAL_INPUTS);
}

/** The portal's production build (`.next`). */
export async function buildPortal(
  root: string,
  env: NodeJS.ProcessEnv,
  onLine: OnLine,
  { background = false } = {},
): Promise<"built" | "fresh"> {
  await mkdir(path.join(root, ".next"), { recursive: true });
  const current = await portalFingerprint(root);
  return await unlessFresh(path.join(root, ".next", "sluice-stamp"), current, () =>
    run(process.execPath, ["node_modules/next/dist/bin/next", "build"], { cwd: root, env, onLine, background }),
  );
}

const PRODUCT: CargoBuild = { args: PRODUCT_BUILD, stamp: "sluice-stamp", program: "gpud" };
const EVERYTHING: CargoBuild = { args: EVERYTHING_BUILD, stamp: "sluice-test-stamp", program: "sluice-loopback" };

/** gpud, the `sluice` command and the client libraries, by cargo. */
export async function buildNative(root: string, onLine: OnLine): Promise<void> {
  await cargoBuilds(root, [PRODUCT], onLine);
}

/** The same and, on top, the programs that tests and benchmarks run. */
export async function buildNativeForTests(root: string, onLine: OnLine): Promise<void> {
  await cargoBuilds(root, [PRODUCT, EVERYTHING], onLine);
}

type CargoBuild = {
  args: string[];
  /** The file in the target folder that says of which sources the last build was. */
  stamp: string;
  /** One of the programs it makes: without it, it is made again whatever the stamp says. */
  program: string;
};

async function cargoBuilds(root: string, builds: CargoBuild[], onLine: OnLine): Promise<void> {
  const target = path.join(root, "native", "target", "release");
  await mkdir(target, { recursive: true });
  const current = await fingerprint(root, ["native"]);
  for (const { args, stamp, program } of builds) {
    if (!existsSync(path.join(target, program))) await rm(path.join(target, stamp), { force: true });
    await unlessFresh(path.join(target, stamp), current, async () => {
      const missing = missingTools(["rust", "linker"]);
      if (missing.length > 0) throw new Error(missing.join("\n"));
      await run("cargo", args, {
        cwd: path.join(root, "native"),
        env: { ...process.env, CARGO_TERM_COLOR: "never" },
        onLine,
        background: true,
      });
    });
  }
}

/** The `sluice-gpu` wheel with the native libraries inside; returns its path. */
export async function buildWheel(root: string, stateDir: string, onLine: OnLine): Promise<string> {
  const current = await fingerprint(root, ["native/python", "native/target/release/sluice-stamp"]);
  const { stamp, folder } = wheelPlaces(stateDir, current);
  await mkdir(folder, { recursive: true });
  await unlessFresh(stamp, current, async () => {
    const missing = missingTools(["python"]);
    if (missing.length > 0) throw new Error(missing.join("\n"));
    await run("python3", ["native/python/build_wheel.py", "--native-dir", "native/target/release", "--out", folder], {
      cwd: root,
      onLine,
    });
  });
  const wheel = await wheelIn(folder);
  if (wheel === undefined) throw new Error(`The wheel was not built: nothing in ${folder}.`);
  return wheel;
}
