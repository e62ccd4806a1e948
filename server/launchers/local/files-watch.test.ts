import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { logger } from "#server/log.ts";
import { FilesWatch } from "./files-watch.ts";

const MIB = 1024 ** 2;

let folder: string;
let home: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-files-"));
  home = path.join(folder, "home");
  await mkdir(home);
  await writeFile(path.join(home, "data"), Buffer.alloc(3 * MIB, 1));
});
afterEach(async () => await rm(folder, { recursive: true }));

it("tells how much a workspace takes above its limit, and nothing below", async () => {
  const running = async () => [
    { id: "large", folders: [home], limitBytes: 2 * MIB },
    { id: "roomy", folders: [home], limitBytes: 4 * MIB },
    { id: "empty", folders: [path.join(folder, "none")], limitBytes: MIB },
  ];
  const watch = new FilesWatch(running, logger("test"));
  await expect
    .poll(() => watch.newsOf("large")?.sentence)
    .toMatch(/^The files of this workspace take 3.* MiB; the limit is 2.* MiB\. Delete files/);
  expect(["roomy", "empty"].map((id) => watch.newsOf(id))).toEqual([undefined, undefined]);
  await watch.stop();
});
