// Plain JavaScript without dependencies: runs on the Node that is there, installs the npm packages when the lock file
// changed, and goes on in the Node 24 that those packages bring.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import module from "node:module";
import { setPriority } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { keepFolder, takeFolder } from "./lib/cache.mjs";
import { endWithReader } from "./lib/closed-pipe.mjs";
import { PRODUCT_BUILD } from "./lib/native-build.mjs";
import { restoreNativeBuild } from "./lib/native-cache.mjs";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const MINIMUM_NODE = [20, 9];
const OWN_NODE_MAJOR = 24;

/**
 * Makes the packages present and the Node right. Returns true when the caller may import the TypeScript entry;
 * otherwise a child has done the work and this process ends with its exit code. `native`: whether the command goes on
 * to the Rust build, which then begins beside npm. `development`: whether it needs the packages that only checks and
 * tests use. `outlivesReader`: whether the command goes on when the reader of its output leaves.
 */
export async function bootstrap(entry, { native = true, development = true, outlivesReader = false } = {}) {
  process.chdir(root);
  if (!outlivesReader) endWithReader();
  // What a person waits for begins here, also when another Node goes on.
  process.env.SLUICE_STARTED_AT ??= String(Date.now());
  refuseWrongPlatform();
  if (native) restoreNativeBuild(root);
  installPackages(native, development);
  keepCompiled();
  const major = Number(process.versions.node.split(".")[0]);
  if (major >= OWN_NODE_MAJOR) return true;
  const node = path.join(root, "node_modules", ".bin", "node");
  if (!existsSync(node)) {
    fail(
      `Node ${OWN_NODE_MAJOR} is needed and its package is not served for this platform.\nInstall Node ${OWN_NODE_MAJOR} or newer and run the command again.`,
    );
  }
  await runInstead(node, [fileURLToPath(entry), ...process.argv.slice(2)]);
  return false;
}

function refuseWrongPlatform() {
  if (process.platform !== "linux") fail("Sluice runs on Linux (or WSL2).");
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < MINIMUM_NODE[0] || (major === MINIMUM_NODE[0] && minor < MINIMUM_NODE[1])) {
    fail(`Node ${MINIMUM_NODE.join(".")} or newer is needed; this is ${process.versions.node}.`);
  }
}

/**
 * Keeps what Node makes of the TypeScript sources, for this process and those it starts: a third of a second start's time.
 * Beside the packages, so that it goes when they are installed anew.
 */
function keepCompiled() {
  process.env.NODE_COMPILE_CACHE ??= path.join(root, "node_modules", ".cache", "compiled");
  // Missing in Node 20, which only hands over to another one here.
  module.enableCompileCache?.(process.env.NODE_COMPILE_CACHE);
}

function installPackages(native, development) {
  const lock = readFileSync(path.join(root, "package-lock.json"));
  const manifest = readFileSync(path.join(root, "package.json"));
  const patch = readFileSync(path.join(root, "scripts", "patch-postgres.mjs"));
  const content = createHash("sha256").update(lock).update(manifest).update(patch).update(process.arch);
  const current = content.digest("hex");
  const stampFile = path.join(root, "node_modules", ".sluice-stamp");
  const installed = existsSync(stampFile) ? readFileSync(stampFile, "utf8") : "";
  const all = `${current} with development packages`;
  if (installed === all || (installed === current && !development)) return;
  const started = Date.now();
  console.log("  …  npm packages");
  const folder = path.join(root, "node_modules");
  if (development && !existsSync(folder) && takeFolder("npm", current, folder)) {
    console.log(`  ✓  npm packages, from the cache  ${((Date.now() - started) / 1000).toFixed(1)} s`);
    return;
  }
  const putNativeBuildBack = native ? beginNativeBuild() : () => undefined;
  // Without node_modules/.bin in PATH: npm must not run on the Node that it is about to replace.
  const bin = path.join(root, "node_modules", ".bin");
  const searchPath = (process.env.PATH ?? "")
    .split(":")
    .filter((dir) => dir !== bin)
    .join(":");
  const omitted = development ? [] : ["--omit=dev"];
  const result = spawnSync("npm", ["ci", ...omitted, "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    env: { ...process.env, PATH: searchPath },
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (result.status !== 0) fail("npm could not install the packages; what it says stands above.");
  putNativeBuildBack();
  writeFileSync(stampFile, development ? all : current);
  rmSync(path.join(root, ".next", "cache"), { recursive: true, force: true });
  if (development) keepFolder("npm", current, folder);
  console.log(`  ✓  npm packages  ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

/**
 * npm keeps one core busy for a minute or more: the Rust build, the longest step of a first start, begins beside it.
 * The step that needs the build calls cargo again, waits at cargo's own lock, and says what went wrong if it did.
 * Calling what is returned puts it behind the portal's build, which people wait for.
 */
function beginNativeBuild() {
  const cargo = spawn("cargo", PRODUCT_BUILD, { cwd: path.join(root, "native"), stdio: "ignore" });
  cargo.once("error", () => undefined);
  const { pid } = cargo;
  if (pid === undefined) return () => undefined;
  cargo.unref();
  process.once("exit", () => cargo.kill());
  return () => {
    try {
      setPriority(pid, 10);
    } catch {
      // It has ended already.
    }
  };
}

async function runInstead(program, args) {
  const bin = path.join(root, "node_modules", ".bin");
  const child = spawn(program, args, {
    stdio: "inherit",
    env: { ...process.env, PATH: `${bin}:${process.env.PATH ?? ""}` },
  });
  // A terminal sends Ctrl-C to the whole group; a supervisor sends SIGTERM to this process alone.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    });
  }
  const code = await new Promise((resolve) => {
    child.once("error", (error) => fail(error.message));
    child.once("exit", (status, signal) => resolve(signal ? 1 : (status ?? 1)));
  });
  process.exit(code);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
