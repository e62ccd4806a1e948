import { readdirSync, readlinkSync } from "node:fs";
import { link, mkdir, mkdtemp, readlink, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { measureFolder } from "./dataset-folder.ts";
import { type WalkLimits, walkFiles } from "./walk-files.ts";

let folder: string;
let outside: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-walk-"));
  outside = await mkdtemp(path.join(tmpdir(), "sluice-outside-"));
  await writeFile(path.join(outside, "secret"), "x".repeat(1_000));
});
afterEach(async () => {
  for (const each of [folder, outside]) await rm(each, { recursive: true });
});

const at = (...names: string[]) => path.join(folder, ...names);
const lay = async (name: string, bytes: number) => {
  await mkdir(path.dirname(at(name)), { recursive: true });
  await writeFile(at(name), "x".repeat(bytes));
};
const walk = async (limits?: Partial<WalkLimits>, onFile: (file: string) => Promise<void> = async () => undefined) => {
  const aboveLimit = (what: string) => new Error(`more than ${what}`);
  const all = { entries: 100, depth: 10, linkedFiles: 10, ...limits };
  let bytes = 0;
  for await (const file of walkFiles(folder, { aboveLimit, limits: all })) {
    bytes += file.bytes;
    await onFile(file.name);
  }
  return bytes;
};

it("counts a hard-linked file once, and follows no symbolic link", async () => {
  await lay("data", 100);
  await lay("deep/er/data", 10);
  await link(at("data"), at("deep", "again"));
  await link(at("data"), at("third"));
  await symlink(outside, at("folder"));
  await symlink(path.join(outside, "secret"), at("file"));
  await symlink("..", at("deep", "loop"));
  expect(await measureFolder(folder)).toEqual({ bytes: 110, files: 2 });
  await expect(measureFolder(at("folder"))).rejects.toThrow();
});

it("follows no link that replaces a folder during the walk", async () => {
  for (const name of ["one", "two"]) await lay(`${name}/inner/data`, 10);
  let exchanged = false;
  const bytes = await walk({}, async (name) => {
    if (exchanged) return;
    exchanged = true;
    // The folder that the walk is not in.
    const [inside] = (await readlink(path.dirname(name))).slice(folder.length + 1).split("/");
    const other = inside === "one" ? "two" : "one";
    await rename(at(other), at("..", `${path.basename(folder)}-moved`));
    await mkdir(path.join(outside, "inner"));
    await writeFile(path.join(outside, "inner", "data"), "x".repeat(1_000));
    await symlink(outside, at(other));
  });
  await rm(at("..", `${path.basename(folder)}-moved`), { recursive: true });
  expect(bytes).toBe(10);
});

it("ends above each limit, and leaves no descriptor open", async () => {
  for (const name of ["a/b/c/d", "a/b/e", "f"]) await lay(name, 1);
  for (const name of ["g", "h"]) {
    await lay(name, 1);
    await link(at(name), at(`${name}-again`));
  }
  const leadsIntoFolder = (number: string) => {
    try {
      return readlinkSync(`/proc/self/fd/${number}`).startsWith(folder);
    } catch {
      // The descriptor of this look itself.
      return false;
    }
  };
  await expect(walk({ entries: 9 })).rejects.toThrow("more than 9 files and folders");
  await expect(walk({ depth: 3 })).rejects.toThrow("more than 3 levels of folders");
  await expect(walk({ linkedFiles: 1 })).rejects.toThrow("more than 1 hard-linked files");
  const left = walkFiles(folder, { aboveLimit: (what) => new Error(what) });
  await left.next();
  await left.return(undefined);
  expect(await walk({ entries: 10, depth: 4, linkedFiles: 2 })).toBe(5);
  expect(readdirSync("/proc/self/fd").filter(leadsIntoFolder)).toEqual([]);
});
