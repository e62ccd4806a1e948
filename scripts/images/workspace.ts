/** A workspace's image: the base, the interpreter, and an environment as the local launcher builds and mounts it. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Image, type Part, writeArchive, writeLayer, writeUsers } from "#scripts/images/archive.ts";
import { cacheFolder } from "#scripts/lib/cache.ts";
import { insideLayout } from "#server/launchers/layout.ts";
import type { BuiltEnvironment } from "#server/launchers/local/environment.ts";
import { EXAMPLES, JUPYTER_CONFIG, writeKernelSpec, writeOverlay } from "#server/launchers/local/workspace-files.ts";

const START = path.resolve("server/launchers/kubernetes/image/start.sh");
const INIT = path.resolve("server/launchers/local/init.sh");

/** Of an interpreter, what only its developers need. */
const NOT_NEEDED = [
  "*.a",
  "./lib/python3.*/test",
  "./lib/python3.*/idlelib",
  "./lib/python3.*/site-packages",
  "./share",
];

/** Builds the image unless that was done for the same content; its tag is that content's hash. */
export async function workspaceImage(
  environment: BuiltEnvironment,
  base: string,
  say: (line: string) => void,
): Promise<Image> {
  const staged = await mkdtemp(path.join(tmpdir(), "sluice-image-"));
  try {
    const word = path.basename(environment.path).replace(/-[0-9a-f]+$/, "");
    await stage(staged, environment);
    const tag = await contentHash(staged, environment);
    const name = `localhost/sluice-workspace-${word}:${tag}`;
    const file = path.join(cacheFolder("images"), `workspace-${word}-${tag}.tar`);
    if (existsSync(file)) return { name, file };
    say(`Making the image ${name}`);
    const layer = `${file}.layer`;
    const parts: Part[] = [
      { from: staged, to: "/" },
      ...(environment.basePrefix === "/usr"
        ? []
        : [{ from: environment.basePrefix, to: environment.basePrefix, without: NOT_NEEDED }]),
      { from: environment.path, to: insideLayout.environment },
    ];
    await writeLayer(layer, parts);
    await writeArchive(file, name, [base, layer], {
      entrypoint: ["/bin/sh", "/opt/sluice/start.sh"],
      env: environment.env,
      user: "1000:1000",
    });
    await rm(layer);
    return { name, file };
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
}

/** What is written here and is in no other part: the tree as it lies in the image. */
async function stage(root: string, environment: BuiltEnvironment): Promise<void> {
  const at = (...names: string[]) => path.join(root, ...names);
  await chmod(root, 0o755);
  for (const folder of ["home/user", "opt/sluice/packages", "run/sluice"])
    await mkdir(at(folder), { recursive: true, mode: 0o755 });
  await writeOverlay(at("opt/sluice/overlay"), insideLayout, environment);
  await writeKernelSpec(at("opt/sluice/kernels/python3"), insideLayout);
  await cp(JUPYTER_CONFIG, at(insideLayout.jupyterConfig), { recursive: true });
  await cp(EXAMPLES, at("opt/sluice/examples"), { recursive: true });
  for (const [script, name] of [
    [START, "start.sh"],
    [INIT, "init.sh"],
  ] as const)
    await cp(script, at("opt/sluice", name));
  await writeUsers(root, { name: "user", id: 1000, home: "/home/user" });
  // The interpreter may lie in a folder that is closed to others on this machine.
  if (environment.basePrefix === "/usr") return;
  await mkdir(at(environment.basePrefix), { recursive: true, mode: 0o755 });
}

async function contentHash(root: string, environment: BuiltEnvironment): Promise<string> {
  const hash = createHash("sha256").update(`${environment.hash}\0${environment.basePrefix}\0`);
  for (const file of [
    "opt/sluice/start.sh",
    "opt/sluice/init.sh",
    "opt/sluice/kernels/python3/kernel.json",
    "etc/passwd",
  ]) {
    hash.update(await readFile(path.join(root, file)));
  }
  for (const name of ["jupyter_server_config.py", "jupyter_config.py"])
    hash.update(await readFile(path.join(JUPYTER_CONFIG, name)));
  return hash.digest("hex").slice(0, 16);
}
