/** The commands of a shared environment, such as `pip` and `jupyter`, for a workspace's overlay. */
import { mkdir, open, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";

/** First lines of a relocatable command by uv: it runs the interpreter in its own folder. */
const BESIDE_ITSELF = `#!/bin/sh\n'''exec' "$(dirname -- "$(realpath -- "$0")")"/`;
/** The overlay's interpreter, from a folder beside the overlay's `bin`. */
const OVERLAYS = `#!/bin/sh\n'''exec' "$(dirname -- "$(dirname -- "$(realpath -- "$0")")")"/bin/`;

/**
 * Writes the Python commands of the environment into `folder`, run by the overlay's interpreter: they see the
 * workspace's own packages, and those that write into a Python environment write into the overlay. `folder` lies
 * beside the overlay's `bin`, where the commands of the workspace's own packages are, so that neither overwrites the
 * other. Programs in other languages are left out.
 */
export async function writeCommands(folder: string, environment: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const bin = path.join(environment, "bin");
  for (const entry of await readdir(bin, { withFileTypes: true })) {
    if (!entry.isFile() || !(await isRelocatable(path.join(bin, entry.name)))) continue;
    const text = await readFile(path.join(bin, entry.name), "utf8");
    await writeFile(path.join(folder, entry.name), OVERLAYS + text.slice(BESIDE_ITSELF.length), { mode: 0o755 });
  }
}

/** A command is a few lines; a package of a proposal may have put anything there. */
const MOST_BYTES = 1024 * 1024;

async function isRelocatable(name: string): Promise<boolean> {
  const file = await open(name);
  try {
    if ((await file.stat()).size > MOST_BYTES) return false;
    const begin = Buffer.alloc(BESIDE_ITSELF.length);
    const { bytesRead } = await file.read(begin, 0, begin.length, 0);
    return begin.toString("latin1", 0, bytesRead) === BESIDE_ITSELF;
  } finally {
    await file.close();
  }
}
