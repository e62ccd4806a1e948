/** gpud's image: the base, the program, and the script that joins the pool. */
import { cp, mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { type Recipe, tagOf, writeUsers } from "#scripts/images/archive.ts";
import { crates } from "#scripts/images/bill.ts";
import { containerfileText } from "#scripts/images/containerfile.ts";

const START = "deploy/images/gpud/start.sh";
/** Relative to a checkout. */
export const PROGRAM = "native/target/release/gpud";

/** Of a checkout whose Rust is built. */
export async function gpudImage(root: string): Promise<Recipe> {
  const content = await Promise.all([PROGRAM, START].map((file) => readFile(path.join(root, file))));
  return {
    root,
    word: "gpud",
    tag: tagOf(...content, await containerfileText(root, "gpud")),
    stage: async (staged) => {
      for (const folder of ["usr/local/bin", "opt/sluice", "var/lib/sluice-gpud"])
        await mkdir(path.join(staged, folder), { recursive: true, mode: 0o755 });
      await writeUsers(staged);
      await cp(path.join(root, PROGRAM), path.join(staged, "usr/local/bin/gpud"));
      await cp(path.join(root, START), path.join(staged, "opt/sluice/start.sh"));
    },
    packages: () => crates(root, ["sluice-gpud"]),
  };
}
