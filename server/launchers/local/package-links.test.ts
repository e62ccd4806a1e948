/** Links that a package of a proposed environment lays in the place of Sluice's own folders. */
import { existsSync } from "node:fs";
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cachesOf, removeCaches, replaceFile, writeLabSettings } from "./package-links.ts";

let base: string;
let environment: string;
/** A folder of the installation with a file in it. */
let outside: string;

beforeEach(async () => {
  base = await mkdtemp(path.join(tmpdir(), "sluice-links-"));
  [environment, outside] = [path.join(base, "environment"), path.join(base, "outside")];
  for (const folder of [environment, path.join(outside, "cache")]) await mkdir(folder, { recursive: true });
  await writeFile(path.join(outside, "cache", "key"), "secret");
});
afterEach(async () => await rm(base, { recursive: true, force: true }));

/** Lays a link at a path below the environment. */
async function link(target: string, ...parts: string[]): Promise<void> {
  const at = path.join(environment, ...parts);
  await mkdir(path.dirname(at), { recursive: true });
  await symlink(target, at);
}

const isThere = async (file: string) => (await lstat(file).catch(() => undefined)) !== undefined;
const untouched = async () => {
  expect(await readdir(outside)).toEqual(["cache"]);
  expect(await readdir(path.join(outside, "cache"))).toEqual(["key"]);
  expect(await readFile(path.join(outside, "cache", "key"), "utf8")).toBe("secret");
};

describe("the caches of an environment", () => {
  it("are removed with what a package has put there", async () => {
    await mkdir(path.join(cachesOf(environment), "matplotlib"), { recursive: true });
    await link(path.join(outside, "cache"), "share", "sluice", "cache", "link");
    await removeCaches(environment);
    expect(await isThere(cachesOf(environment))).toBe(false);
    await untouched();
  });

  it("may be missing", async () => await removeCaches(environment));

  it("are removed where they are a link, and the folder behind the link stays", async () => {
    await link(path.join(outside, "cache"), "share", "sluice", "cache");
    await removeCaches(environment);
    expect(await isThere(cachesOf(environment))).toBe(false);
    await untouched();
  });

  it("are removed where they are a link to a folder that exists only later", async () => {
    await link(path.join(base, "later"), "share", "sluice", "cache");
    await removeCaches(environment);
    expect(await isThere(cachesOf(environment))).toBe(false);
  });

  it.each([["share"], ["share", "sluice"]])("are refused below a link (%s %s)", async (...parts) => {
    const names = parts.filter(Boolean);
    await mkdir(path.join(base, "later"), { recursive: true });
    for (const target of ["/nowhere/yet", outside, path.join(base, "later")]) {
      await rm(path.join(environment, ...names), { force: true });
      await link(target, ...names);
      await expect(removeCaches(environment)).rejects.toThrow(/^A package has laid the link share\S* where Sluice's/);
    }
    await untouched();
  });
});

describe("the settings of JupyterLab", () => {
  const overrides = () => path.join(environment, "share", "jupyter", "lab", "settings", "overrides.json");

  it("replace a file of a package", async () => {
    await writeLabSettings(environment, "{}");
    await writeLabSettings(environment, '{"ours":1}');
    expect(await readFile(overrides(), "utf8")).toBe('{"ours":1}');
  });

  it("replace a link, and the file behind the link stays", async () => {
    await link(path.join(outside, "cache", "key"), "share", "jupyter", "lab", "settings", "overrides.json");
    await writeLabSettings(environment, "{}");
    expect((await lstat(overrides())).isFile()).toBe(true);
    await untouched();
  });

  it("make no folder behind a link", async () => {
    await link(outside, "share", "jupyter", "lab");
    await expect(writeLabSettings(environment, "{}")).rejects.toThrow(
      /share\/jupyter\/lab where JupyterLab's settings/,
    );
    await untouched();
    await rm(path.join(environment, "share", "jupyter", "lab"));
    await link(path.join(base, "later"), "share", "jupyter", "lab");
    await expect(writeLabSettings(environment, "{}")).rejects.toThrow(/A package has laid the link/);
    expect(existsSync(path.join(base, "later"))).toBe(false);
  });
});

it("replaces a link by a file, and leaves the file behind the link", async () => {
  await link(path.join(outside, "cache", "key"), "sluice-environment.json");
  await replaceFile(path.join(environment, "sluice-environment.json"), "facts");
  expect(await readFile(path.join(environment, "sluice-environment.json"), "utf8")).toBe("facts");
  await untouched();
});
