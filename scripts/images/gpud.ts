/** gpud's image: the base, the program, and the script that joins the pool. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Image, writeArchive, writeLayer, writeUsers } from "#scripts/images/archive.ts";
import { cacheFolder } from "#scripts/lib/cache.ts";

const START = "deploy/images/gpud/start.sh";
const PROGRAM = "native/target/release/gpud";

/** Builds the image from a checkout whose Rust is built, unless that was done for the same content. */
export async function gpudImage(root: string, base: string, say: (line: string) => void): Promise<Image> {
  const hash = createHash("sha256");
  for (const file of [PROGRAM, START]) hash.update(await readFile(path.join(root, file)));
  const tag = hash.digest("hex").slice(0, 16);
  const name = `localhost/sluice-gpud:${tag}`;
  const file = path.join(cacheFolder("images"), `gpud-${tag}.tar`);
  if (existsSync(file)) return { name, file };
  say(`Making the image ${name}`);
  const staged = await mkdtemp(path.join(tmpdir(), "sluice-image-"));
  const layer = `${file}.layer`;
  try {
    await chmod(staged, 0o755);
    for (const folder of ["usr/local/bin", "opt/sluice", "var/lib/sluice-gpud"])
      await mkdir(path.join(staged, folder), { recursive: true, mode: 0o755 });
    await writeUsers(staged);
    await cp(path.join(root, PROGRAM), path.join(staged, "usr/local/bin/gpud"));
    await cp(path.join(root, START), path.join(staged, "opt/sluice/start.sh"));
    await writeLayer(layer, [{ from: staged, to: "/" }]);
    await writeArchive(file, name, [base, layer], { entrypoint: ["/bin/sh", "/opt/sluice/start.sh"] });
    return { name, file };
  } finally {
    await rm(layer, { force: true });
    await rm(staged, { recursive: true, force: true });
  }
}
