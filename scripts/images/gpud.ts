/** gpud's image: the base, the program, and the script that joins the pool. */
import { cp, mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { type Image, makeImage, tagOf, writeUsers } from "#scripts/images/archive.ts";
import type { Base } from "#scripts/images/base.ts";
import { crates } from "#scripts/images/bill.ts";

const START = "deploy/images/gpud/start.sh";
const PROGRAM = "native/target/release/gpud";

/** Builds the image from a checkout whose Rust is built, unless that was done for the same content. */
export async function gpudImage(root: string, base: Base, say: (line: string) => void): Promise<Image> {
  const content = await Promise.all([PROGRAM, START].map((file) => readFile(path.join(root, file))));
  return await makeImage(
    {
      word: "gpud",
      tag: tagOf(...content),
      base,
      stage: async (staged) => {
        for (const folder of ["usr/local/bin", "opt/sluice", "var/lib/sluice-gpud"])
          await mkdir(path.join(staged, folder), { recursive: true, mode: 0o755 });
        await writeUsers(staged);
        await cp(path.join(root, PROGRAM), path.join(staged, "usr/local/bin/gpud"));
        await cp(path.join(root, START), path.join(staged, "opt/sluice/start.sh"));
      },
      config: { entrypoint: ["/bin/sh", "/opt/sluice/start.sh"] },
      packages: () => crates(root, ["sluice-gpud"]),
    },
    say,
  );
}
