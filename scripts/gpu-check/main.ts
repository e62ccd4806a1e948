/**
 * `npm run gpu-check [-- --pack | OPTIONS OF run.py]`: native against remoted on a real GPU. Packs what is needed into
 * `.gpu-check/` and, where this machine has an NVIDIA GPU, runs it with results in `bench/results/`. Elsewhere, or with
 * `--pack`, it says how to run the pack on a machine that has one: Python is all that must be there.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { buildNativeForTests } from "#scripts/start/builds.ts";
import { pack } from "./pack.ts";

const options = process.argv.slice(2);
const packOnly = options.includes("--pack");
const root = process.cwd();
const folder = path.join(root, ".gpu-check");
await buildNativeForTests(root, (line) => console.log(`  ${line}`));
const { bytes, files } = await pack(root, folder);
console.log(`.gpu-check: ${files} files, ${(bytes / 1e6).toFixed(1)} MB`);

const hasGpu = existsSync("/dev/nvidiactl") || options.some((option) => option.startsWith("--driver"));
if (packOnly || !hasGpu) {
  if (!packOnly) console.log("This machine has no NVIDIA GPU.");
  console.log("Copy .gpu-check/ to a machine with one, and run there:");
  console.log("  python3 .gpu-check/run.py --out DIR");
  process.exit(0);
}
const out = path.join(root, "bench", "results");
const program = path.join(folder, "run.py");
const { status } = spawnSync("python3", [program, "--out", out, ...options], { stdio: "inherit" });
process.exit(status ?? 1);
