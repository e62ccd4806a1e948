import { chmod, lstat, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { shortFolder } from "./short-folder.ts";

const before = process.env.TMPDIR;
let base: string;
let deep: string;
const privateFolder = () => path.join(base, `sluice-${process.getuid?.()}`);

beforeEach(async () => {
  base = await mkdtemp(path.join(tmpdir(), "short-"));
  deep = path.join(base, "a".repeat(60), "state");
  await mkdir(deep, { recursive: true });
  process.env.TMPDIR = base;
});
afterEach(async () => {
  if (before === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = before;
  await rm(base, { recursive: true, force: true });
});

it("returns a short state directory as it is", async () => {
  expect(await shortFolder("/srv/sluice")).toBe("/srv/sluice");
});

it("leads to a deep state directory through a private folder", async () => {
  const short = await shortFolder(deep);
  expect(Buffer.byteLength(short)).toBeLessThanOrEqual(60);
  expect(await realpath(short)).toBe(await realpath(deep));
  expect((await lstat(privateFolder())).mode & 0o777).toBe(0o700);
  expect(await shortFolder(deep)).toBe(short);
});

it("gives each state directory a path of its own", async () => {
  expect(await shortFolder(`${deep}/one`)).not.toBe(await shortFolder(`${deep}/two`));
});

it("replaces a link that leads elsewhere", async () => {
  const short = await shortFolder(deep);
  await rm(short);
  await symlink("/etc", short);
  expect(await realpath(await shortFolder(deep))).toBe(await realpath(deep));
});

it("rejects a private folder that others can enter, and one that is a link or a file", async () => {
  await mkdir(privateFolder(), { mode: 0o700 });
  await chmod(privateFolder(), 0o755);
  await expect(shortFolder(deep)).rejects.toThrow(/mode 0700/);
  await rm(privateFolder(), { recursive: true });
  await symlink("/tmp", privateFolder());
  await expect(shortFolder(deep)).rejects.toThrow(/mode 0700/);
  await rm(privateFolder());
  await writeFile(privateFolder(), "");
  await expect(shortFolder(deep)).rejects.toThrow();
});

it("takes /tmp where the temporary folder lies deep", async () => {
  process.env.TMPDIR = path.join(base, "b".repeat(60));
  await mkdir(process.env.TMPDIR);
  const short = await shortFolder(deep);
  expect(short).toMatch(/^\/tmp\/sluice-\d+\/[0-9a-f]{16}$/);
  await rm(short);
});

it("is found by callers of one process that ask at the same time", async () => {
  const found = await Promise.all(Array.from({ length: 20 }, async () => await shortFolder(deep)));
  expect(new Set(found).size).toBe(1);
  expect(await realpath(found[0] ?? "")).toBe(await realpath(deep));
});
