/** Puts all that `run.py` needs into one folder that can be carried to any x86-64 Linux with Python. */
import { existsSync } from "node:fs";
import { chmod, copyFile, cp, mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { run } from "#scripts/lib/processes.ts";

/** What a machine that is lent for a check may be sent. */
export const MOST_BYTES = 60e6;

const PROGRAMS = ["gpud", "sluice-loopback", "sluice-programs", "sluice-driver-bench", "sluice-share-bench"] as const;

/** The client libraries, under the names that programs look for, and how the build calls them. */
const LIBRARIES: Record<string, string> = {
  "libsluice_client.so": "libsluice_client.so",
  "libcuda.so.1": "libcuda.so",
  "libnvidia-ml.so.1": "libnvidia_ml.so",
  "libcudart.so.12": "libcudart12.so",
  "libcudart.so.13": "libcudart13.so",
};

/** What a Python process of a workspace does by `sluice_gpu.pth`, without anything being installed. */
const SITECUSTOMIZE = `import os

if os.environ.get("SLUICE_BROKER_URL"):
    from sluice_gpu._hook import install

    install()
`;

/** Packs into `folder`, which is made anew; the Rust build has been made. */
export async function pack(root: string, folder: string): Promise<{ bytes: number; files: number }> {
  const built = path.join(root, "native", "target", "release");
  const native = path.join(folder, "native");
  await rm(folder, { recursive: true, force: true });
  await mkdir(path.join(native, "libraries"), { recursive: true });
  for (const name of PROGRAMS) await stripped(path.join(built, name), path.join(native, name));
  for (const [name, from] of Object.entries(LIBRARIES)) await stripped(path.join(built, from), path.join(native, name));
  for (const name of await readdir(path.join(built, "libraries"))) {
    if (!name.endsWith(".part")) {
      await copyFile(path.join(built, "libraries", name), path.join(native, "libraries", name));
    }
  }
  await mkdir(path.join(folder, "python"));
  await cp(path.join(root, "native", "python", "sluice_gpu"), path.join(folder, "python", "sluice_gpu"), {
    recursive: true,
    filter: (from) => !from.includes("__pycache__"),
  });
  await writeFile(path.join(folder, "python", "sitecustomize.py"), SITECUSTOMIZE);
  const own = path.join(root, "scripts", "gpu-check");
  for (const name of ["run.py", "compare.py"]) await copyFile(path.join(own, name), path.join(folder, name));
  await cp(path.join(own, "parts"), path.join(folder, "parts"), {
    recursive: true,
    filter: (from) => !from.includes("__pycache__"),
  });
  await cp(path.join(root, "native", "conformance", "cuda"), path.join(folder, "cuda"), { recursive: true });
  await cupy(path.join(root, ".sluice", "conformance", "built"), path.join(folder, "cupy-build"));
  const conformance = path.join(root, "native", "conformance");
  for (const file of ["python/parking.py", "plugins/fresh.py"]) {
    await copyFile(path.join(conformance, file), path.join(folder, "parts", path.basename(file)));
  }
  return sizeOf(folder);
}

/**
 * The modules of CuPy that `scripts/cupy/build.py` has linked with the shared runtime, by Python and version: all of
 * them, so only when their wheel is complete.
 */
async function cupy(built: string, folder: string): Promise<void> {
  for (const work of await namesIn(built)) {
    const [, version, python] = /^work-([\d.]+)-(cp\d+)$/.exec(work) ?? [];
    const wheels = python ? await namesIn(path.join(built, python)) : [];
    if (!version || !python || !wheels.some((wheel) => wheel.includes(`-${version}-`))) continue;
    for (const name of await namesIn(path.join(built, work))) {
      const [, module, suffix] = /^([\w.]+)\.(cpython-[\w-]+\.so)$/.exec(name) ?? [];
      if (!module) continue;
      const target = path.join(folder, `${python}-${version}`, `${module.replaceAll(".", "/")}.${suffix}`);
      await mkdir(path.dirname(target), { recursive: true });
      await stripped(path.join(built, work, name), target);
    }
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return existsSync(folder) ? readdir(folder) : [];
}

/** Without symbols: they are a third of a program's size. */
async function stripped(from: string, to: string): Promise<void> {
  await run("strip", ["-o", to, from], {});
  await chmod(to, 0o755);
}

async function sizeOf(folder: string): Promise<{ bytes: number; files: number }> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(files.map((entry) => stat(path.join(entry.parentPath, entry.name))));
  return { bytes: sizes.reduce((sum, { size }) => sum + size, 0), files: files.length };
}
