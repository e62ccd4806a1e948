/** The image from which pods that ask for a GPU by a label get the client libraries and the `sluice` command. */
import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { type Recipe, tagOf, writeUsers } from "#scripts/images/archive.ts";
import { crates } from "#scripts/images/bill.ts";
import { containerfileText } from "#scripts/images/containerfile.ts";

const LIBRARIES = "deploy/images/client/libraries.sh";
const USER = 65532;

/** Of our wheel. */
export async function clientImage(root: string, wheel: string): Promise<Recipe> {
  const content = await Promise.all([wheel, path.join(root, LIBRARIES)].map((file) => readFile(file)));
  return {
    root,
    word: "client",
    tag: tagOf(...content, await containerfileText(root, "client")),
    stage: async (staged) => await stage(staged, root, wheel),
    packages: () => crates(root, ["sluice-cli"]),
  };
}

async function stage(staged: string, root: string, wheel: string): Promise<void> {
  const home = path.join(staged, "opt/sluice");
  const unpacked = await mkdtemp(path.join(tmpdir(), "sluice-wheel-"));
  try {
    await promisify(execFile)("python3", ["-m", "zipfile", "-e", wheel, unpacked]);
    const [data = ""] = (await readdir(unpacked)).filter((name) => name.endsWith(".data"));
    await mkdir(path.join(home, "bin"), { recursive: true, mode: 0o755 });
    await cp(path.join(unpacked, "sluice_gpu/lib"), path.join(home, "lib"), { recursive: true });
    await cp(path.join(unpacked, data, "scripts/sluice"), path.join(home, "bin/sluice"));
  } finally {
    await rm(unpacked, { recursive: true, force: true });
  }
  await cp(path.join(root, LIBRARIES), path.join(home, "libraries.sh"));
  await writeUsers(staged, { name: "sluice", id: USER, home: "/tmp" });
  // Unpacking keeps no modes.
  for (const name of await readdir(path.join(home, "lib"))) await chmod(path.join(home, "lib", name), 0o755);
  await chmod(path.join(home, "bin/sluice"), 0o755);
}
