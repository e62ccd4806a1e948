/** The installer `uv`: the one on the machine, or one of our own below the state directory. */
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { unfinishedName } from "#server/unfinished-name.ts";
import { runLines } from "./processes.ts";

/** The version installed when the machine has none. */
const UV_VERSION = "0.13.8";

/** The path of uv; installs it with pip when the machine has none. */
export async function findUv(stateDir: string, onLine: (line: string) => void): Promise<string> {
  for (const folder of (process.env.PATH ?? "").split(path.delimiter)) {
    const candidate = path.join(folder, "uv");
    if (folder !== "" && existsSync(candidate)) return candidate;
  }
  const home = path.join(stateDir, "tools", `uv-${UV_VERSION}`);
  const own = path.join(home, "bin", "uv");
  if (existsSync(own)) return own;
  const unfinished = unfinishedName(home);
  await mkdir(path.dirname(home), { recursive: true, mode: 0o700 });
  onLine("Installing uv, the installer of Python packages");
  try {
    await runLines("python3", ["-m", "pip", "install", "--quiet", "--target", unfinished, `uv==${UV_VERSION}`], {
      onLine,
    });
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    const detail = error instanceof Error ? error.message : String(error);
    throw new Error(
      `uv could not be installed. Install Python 3.10 or newer with pip (apt-get install python3-pip), or uv itself. ${detail}`,
    );
  }
  await rename(unfinished, home).catch(async (error: unknown) => {
    // Somebody else was quicker.
    await rm(unfinished, { recursive: true, force: true });
    if (!existsSync(own)) throw error;
  });
  return own;
}
