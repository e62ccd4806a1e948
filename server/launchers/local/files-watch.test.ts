import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { logger } from "#server/log.ts";
import { bytesOf, FilesWatch } from "./files-watch.ts";

const MIB = 1024 ** 2;
const never = new AbortController().signal;

let folder: string;
let home: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-files-"));
  home = path.join(folder, "home");
  await mkdir(home);
  await writeFile(path.join(home, "data"), Buffer.alloc(3 * MIB, 1));
});
afterEach(async () => await rm(folder, { recursive: true }));

it("counts files without following a link out of the home", async () => {
  await mkdir(path.join(folder, "outside"));
  await writeFile(path.join(folder, "outside", "large"), Buffer.alloc(20 * MIB, 1));
  for (const name of ["outside", "outside/large"])
    await symlink(path.join(folder, name), path.join(home, path.basename(name)));
  const bytes = await bytesOf([home], never);
  expect(bytes).toBeGreaterThanOrEqual(3 * MIB);
  expect(bytes).toBeLessThan(4 * MIB);
});

it("tells how much a workspace takes above its limit, and nothing below", async () => {
  const running = async () => [
    { id: "large", folders: [home] },
    { id: "empty", folders: [path.join(folder, "none")] },
  ];
  const watch = new FilesWatch(running, 2 * MIB, logger("test"));
  await expect
    .poll(() => watch.newsOf("large")?.sentence)
    .toMatch(/^The files of this workspace take 3.* MiB; the limit is 2.* MiB\. Delete files/);
  expect(watch.newsOf("empty")).toBeUndefined();
  await watch.stop();
});
