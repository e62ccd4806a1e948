/** The image from which pods that ask for a GPU by a label get the client libraries and the `sluice` command. */
import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { type Image, makeImage, tagOf, writeUsers } from "#scripts/images/archive.ts";
import type { Base } from "#scripts/images/base.ts";
import { crates } from "#scripts/images/bill.ts";

const LIBRARIES = "deploy/images/client/libraries.sh";
const USER = 65532;

/** Builds the image from our wheel, unless that was done for the same content. */
export async function clientImage(
  root: string,
  wheel: string,
  base: Base,
  say: (line: string) => void,
): Promise<Image> {
  const content = await Promise.all([wheel, path.join(root, LIBRARIES)].map((file) => readFile(file)));
  return await makeImage(
    {
      word: "client",
      tag: tagOf(...content),
      base,
      stage: async (staged) => await stage(staged, root, wheel),
      config: { entrypoint: ["/opt/sluice/bin/sluice"], user: `${USER}:${USER}` },
      packages: () => crates(root, ["sluice-cli"]),
    },
    say,
  );
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
