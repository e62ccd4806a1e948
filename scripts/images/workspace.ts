/** A workspace's image: the base, the interpreter, and an environment as the local launcher builds and mounts it. */
import { cp, mkdir, readlink } from "node:fs/promises";
import path from "node:path";
import { type Part, type Recipe, tagOf, writeUsers } from "#scripts/images/archive.ts";
import { crates, pythonPackages } from "#scripts/images/bill.ts";
import { fingerprint } from "#scripts/lib/fingerprint.ts";
import { insideLayout } from "#server/launchers/layout.ts";
import type { BuiltEnvironment } from "#server/launchers/local/environment.ts";
import { writeExamples } from "#server/launchers/local/examples.ts";
import {
  JUPYTER_CONFIG,
  OPENCL_DRIVER,
  writeKernelSpec,
  writeOpenclDriver,
  writeOverlay,
} from "#server/launchers/local/workspace-files.ts";

const START = "server/launchers/kubernetes/image/start.sh";
const INIT = "server/launchers/local/init.sh";
/** What `stage` writes follows from these. */
const WRITTEN = [
  START,
  INIT,
  "server/jupyter/config",
  "examples",
  "server/launchers/layout.ts",
  "server/launchers/local/examples.ts",
  "server/launchers/local/overlay-commands.ts",
  "server/launchers/local/workspace-files.ts",
  "scripts/images/workspace.ts",
  "deploy/images/workspace/Containerfile",
];

/** The parts of the wheel that are compiled. */
const CLIENT = ["sluice-client", "sluice-cli"];

/** Of an interpreter, what only its developers need. */
const NOT_NEEDED = [
  "*.a",
  "./lib/python3.*/test",
  "./lib/python3.*/idlelib",
  "./lib/python3.*/site-packages",
  "./share",
];

/**
 * The interpreter of an environment, for an image. A prefix of its own is copied as it is; of Debian's, which is all of
 * `/usr`, the program and its own modules alone, for the base has neither. `link`: to which program the environment's
 * `bin/python` leads.
 */
export function interpreterParts(
  { basePrefix, pythonVersion }: Pick<BuiltEnvironment, "basePrefix" | "pythonVersion">,
  link: string,
): Part[] {
  if (basePrefix !== "/usr") return [{ from: basePrefix, to: basePrefix, without: NOT_NEEDED }];
  const programs = new Set([`bin/python${pythonVersion}`, path.relative(basePrefix, link)]);
  return [
    {
      ...{ from: basePrefix, to: basePrefix, only: [...programs, `lib/python${pythonVersion}`] },
      without: [...NOT_NEEDED, "./lib/python3.*/dist-packages"],
    },
  ];
}

/** Of an environment that is built. */
export async function workspaceImage(root: string, environment: BuiltEnvironment): Promise<Recipe> {
  const { basePrefix, pythonVersion, env } = environment;
  const link = await readlink(path.join(environment.path, "bin", "python"));
  const sitePackages = path.join(environment.path, "lib", `python${pythonVersion}`, "site-packages");
  const name = path.basename(environment.path).replace(/-[0-9a-f]+$/, "");
  return {
    root,
    word: "workspace",
    variant: { name, arguments: { ENVIRONMENT: name }, env },
    tag: tagOf(environment.hash, basePrefix, await fingerprint(root, WRITTEN)),
    stage: (staged) => stage(staged, environment),
    parts: [...interpreterParts(environment, link), { from: environment.path, to: insideLayout.environment }],
    packages: async () => [...(await pythonPackages(sitePackages)), ...(await crates(root, CLIENT))],
  };
}

/** What is written here and is in no other part: the tree as it lies in the image. */
async function stage(root: string, environment: BuiltEnvironment): Promise<void> {
  const at = (...names: string[]) => path.join(root, ...names);
  for (const folder of ["home/user", "opt/sluice/packages", "run/sluice"])
    await mkdir(at(folder), { recursive: true, mode: 0o755 });
  await writeOverlay(at("opt/sluice/overlay"), insideLayout, environment);
  await writeKernelSpec(at("opt/sluice/kernels/python3"), insideLayout);
  await cp(JUPYTER_CONFIG, at(insideLayout.jupyterConfig), { recursive: true });
  await writeExamples(at("opt/sluice/examples"), environment);
  for (const [script, name] of [
    [START, "start.sh"],
    [INIT, "init.sh"],
  ] as const)
    await cp(script, at("opt/sluice", name));
  await writeUsers(root, { name: "user", id: 1000, home: "/home/user" });
  await mkdir(path.dirname(at(OPENCL_DRIVER)), { recursive: true, mode: 0o755 });
  await writeOpenclDriver(at(OPENCL_DRIVER), insideLayout, environment);
  // The interpreter may lie in a folder that is closed to others on this machine.
  if (environment.basePrefix === "/usr") return;
  await mkdir(at(environment.basePrefix), { recursive: true, mode: 0o755 });
}
