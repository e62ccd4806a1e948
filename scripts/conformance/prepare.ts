/** The Python of a conformance suite: a virtual environment in `.sluice/conformance`. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { run } from "#scripts/lib/processes.ts";
import type { Suite } from "./suite.ts";

/** A virtual environment with the suite's packages, made once for each list of them, and this build's own package. */
export async function prepareSuite(
  root: string,
  name: string,
  suite: Suite,
  ownWheel: string,
  onLine: (line: string) => void,
): Promise<string> {
  const cache = path.join(root, ".sluice", "conformance");
  const built = suite.build === undefined ? [] : [await buildWheel(path.join(root, suite.build), cache, onLine)];
  const wanted = [...(suite.withDependencies ? [] : ["--no-deps"]), ...suite.requirements, ...built];
  const hash = createHash("sha256").update(JSON.stringify(wanted)).digest("hex").slice(0, 12);
  const venv = path.join(cache, `${name}-${hash}`);
  const interpreter = path.join(venv, "bin", "python");
  const stamp = path.join(venv, "complete");
  if (!existsSync(stamp)) {
    await rm(venv, { recursive: true, force: true });
    if (suite.python !== undefined) await demandPython(suite.python);
    await run("python3", ["-m", "venv", venv], { onLine });
    await run(interpreter, ["-m", "pip", "install", "-q", ...wanted], { onLine });
    await writeFile(stamp, "");
  }
  await run(interpreter, ["-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", ownWheel], { onLine });
  return interpreter;
}

async function demandPython(oldest: string): Promise<void> {
  const version = `(${oldest.replaceAll(".", ", ")})`;
  await run("python3", ["-c", `import sys; sys.exit(sys.version_info < ${version})`]).catch((error: unknown) => {
    throw new Error(`This suite's packages are for Python ${oldest} and newer: have one as python3.`, { cause: error });
  });
}

/** What the suite's own build makes, kept in `cache`; the last line it prints is the wheel's path. */
async function buildWheel(program: string, cache: string, onLine: (line: string) => void): Promise<string> {
  let last = "";
  const folder = path.join(cache, "built");
  await run("python3", [program, "--cache", folder], {
    onLine: (line) => {
      last = line;
      onLine(line);
    },
  });
  if (!last.endsWith(".whl")) throw new Error(`${program} printed no wheel's path: ${last}`);
  return last;
}
