import { execFileSync } from "node:child_process";
import { lstat, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { resetEnv } from "#server/env.ts";
import type { DatasetMount, Prefetched } from "#server/launchers/launcher.ts";
import { foldersOf, prefetchFolder } from "./dataset-mounts.ts";

const SIZE = 8 << 20;
let root: string;
const before = process.env.SLUICE_DATASET_FOLDERS;

beforeAll(async () => {
  // A folder of the checkout: a temporary one may lie in memory, where nothing is read from anywhere.
  const parent = path.resolve(import.meta.dirname, "..", "..", "..", ".sluice");
  await mkdir(parent, { recursive: true });
  root = await realpath(await mkdtemp(path.join(parent, "test-datasets-")));
  process.env.SLUICE_DATASET_FOLDERS = root;
  resetEnv();
  await mkdir(path.join(root, "data", "deep"), { recursive: true });
  await writeFile(path.join(root, "data", "deep", "numbers"), Buffer.alloc(SIZE, 7), { flush: true });
  await symlink(path.join(root, "data"), path.join(root, "sly"));
  await symlink("/etc/passwd", path.join(root, "data", "link"));
});
afterAll(async () => {
  if (before === undefined) delete process.env.SLUICE_DATASET_FOLDERS;
  else process.env.SLUICE_DATASET_FOLDERS = before;
  resetEnv();
  await rm(root, { recursive: true, force: true });
});

const mount = (name: string, more: Partial<DatasetMount> = {}): DatasetMount => ({
  ...{ id: `dst-${name}`, name, team: undefined, writable: false, prefetch: true },
  source: { kind: "folder", path: path.join(root, name) },
  ...more,
});
const signal = new AbortController().signal;
const plenty = async () => 1e12;
const goOn = () => true;

it("mounts what is there and says what is not, without naming folders, so that the workspace starts without it", async () => {
  const lines: string[] = [];
  const found = await foldersOf(
    [mount("data"), mount("gone"), mount("sly"), mount("away", { source: { kind: "folder", path: "/etc" } })],
    (line) => lines.push(line),
  );
  expect(found).toEqual([{ name: "data", folder: path.join(root, "data"), writable: false }]);
  expect(lines).toEqual([
    "~/datasets/data, read-only",
    "Without ~/datasets/gone: its folder is not on this machine.",
    "Without ~/datasets/sly: its folder has become a link.",
    "Without ~/datasets/away: its folder is not set aside for datasets.",
  ]);
});

describe("reading ahead", () => {
  const file = () => path.join(root, "data", "deep", "numbers");
  /** Bytes of the file that the kernel has in its cache; undefined where nothing tells. */
  const resident = () => {
    try {
      const told = execFileSync("fincore", ["--bytes", "--noheadings", "--output", "RES", file()], {
        encoding: "utf8",
      });
      return Number(told.trim());
    } catch {
      return undefined;
    }
  };

  it("has the kernel hold every byte, and tells each piece of the way", async ({ skip }) => {
    execFileSync("dd", [`of=${file()}`, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]);
    const cold = resident();
    const told: Prefetched[] = [];
    const end = await prefetchFolder(mount("data"), (so) => told.push(so) > 0, signal, plenty);
    expect(end).toEqual({ state: "done", bytes: SIZE, totalBytes: SIZE, message: null });
    expect(told[0]).toMatchObject({ state: "reading", bytes: 0, totalBytes: null });
    expect(told.slice(1).map(({ bytes }) => bytes)).toEqual(Array.from({ length: 8 }, (_, n) => (n + 1) << 20));
    if (cold !== 0) skip("this file system does not tell what is in the cache, or does not let go of it");
    expect(resident()).toBe(SIZE);
  });

  it("stops at half of the free memory, when nobody wants it any more, and where nothing is", async () => {
    const half = await prefetchFolder(mount("data"), goOn, signal, async () => SIZE);
    expect(half).toMatchObject({ state: "partly", bytes: SIZE / 2, totalBytes: SIZE });
    let pieces = 0;
    await prefetchFolder(mount("data"), () => ++pieces < 3, signal, plenty);
    expect(pieces).toBe(3);
    expect(await prefetchFolder(mount("gone"), goOn, signal)).toMatchObject({ state: "missing" });
    expect(await prefetchFolder(mount("data", { prefetch: false }), goOn, signal)).toBeUndefined();
  });
});

it("the home has a link to each dataset, none to one that is gone, and what is its own stays", async () => {
  const [home, datasets] = [path.join(root, "home"), path.join(root, "mounted")];
  const own = path.join(home, "datasets", "taken");
  for (const made of ["fresh", "taken", "moved"]) await mkdir(path.join(datasets, made), { recursive: true });
  await mkdir(own, { recursive: true });
  await symlink(path.join(datasets, "gone"), path.join(home, "datasets", "gone"));
  await symlink("/nowhere", path.join(home, "datasets", "moved"));
  await symlink("/elsewhere", path.join(home, "datasets", "mine"));
  const init = path.join(import.meta.dirname, "init.sh");
  const words = [
    init,
    path.join(root, "ready"),
    path.join(root, "data"),
    path.join(root, "packages"),
    datasets,
    // No forwarder.
    "",
    "true",
  ];
  execFileSync("sh", words, { env: { ...process.env, HOME: home }, stdio: ["ignore", "ignore", "pipe"] });
  const links = execFileSync("find", ["datasets", "-type", "l", "-printf", "%f %l\n"], { cwd: home, encoding: "utf8" });
  expect(links.trim().split("\n").sort()).toEqual([
    `fresh ${datasets}/fresh`,
    "mine /elsewhere",
    `moved ${datasets}/moved`,
  ]);
  expect((await lstat(own)).isDirectory()).toBe(true);
});
