import { link, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { bytesOf } from "./disk-usage.ts";

const MIB = 1024 ** 2;

let folder: string;
let home: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-usage-"));
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
  const bytes = await bytesOf([home]);
  expect(bytes).toBeGreaterThanOrEqual(3 * MIB);
  expect(bytes).toBeLessThan(4 * MIB);
});

it("counts a hard-linked file once, and a missing folder as empty", async () => {
  for (const name of ["second", "third"]) await link(path.join(home, "data"), path.join(home, name));
  expect(await bytesOf([home, path.join(folder, "none")])).toBeLessThan(4 * MIB);
});

it("reports no size for folders that take too long", async () => {
  await expect(bytesOf(["/usr"], { timeoutMs: 1 })).rejects.toThrow("ended with 1");
});
