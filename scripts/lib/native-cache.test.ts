/** Compiled Rust from the cache: cargo compares file times, so a known content gets the time it was compiled with. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { cacheFolder, keepFolder, takeFolder } from "#scripts/lib/cache.mjs";
import { keepNativeBuild, restoreNativeBuild } from "#scripts/lib/native-cache.mjs";

const COMPILED = Date.UTC(2026, 0, 31) / 1000;
const before = process.env.XDG_CACHE_HOME;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-cache-"));
  process.env.XDG_CACHE_HOME = path.join(folder, "cache");
});
afterEach(() => {
  if (before === undefined) delete process.env.XDG_CACHE_HOME;
  else process.env.XDG_CACHE_HOME = before;
  rmSync(folder, { recursive: true, force: true });
});

const write = (file: string, text: string) => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
};

/** A checkout with two sources, without anything compiled. */
function checkout(name: string, sources: Record<string, string>): string {
  const root = path.join(folder, name);
  write(path.join(root, "native", "Cargo.lock"), "");
  write(path.join(root, "native", "Cargo.toml"), "[workspace]");
  for (const [file, text] of Object.entries(sources)) write(path.join(root, "native", file), text);
  return root;
}

const seconds = (root: string, file: string) => statSync(path.join(root, "native", file)).mtimeMs / 1000;

/** The first checkout, compiled and kept. */
function compiled(): string {
  const root = checkout("first", { "a/lib.rs": "a", "b/lib.rs": "b" });
  for (const file of ["a/lib.rs", "b/lib.rs"]) utimesSync(path.join(root, "native", file), COMPILED, COMPILED);
  write(path.join(root, "native/target/release/.fingerprint/a"), "");
  write(path.join(root, "native/target/release/deps/liba.rlib"), "compiled");
  write(path.join(root, "native/target/release/sluice-stamp"), "of the first checkout");
  keepNativeBuild(root, "tests");
  return root;
}

it("gives unchanged sources the time they were compiled with, and makes changed and new ones newer", () => {
  compiled();
  const clone = checkout("clone", { "a/lib.rs": "a", "b/lib.rs": "changed", "c/lib.rs": "new" });
  restoreNativeBuild(clone);
  expect(readFileSync(path.join(clone, "native/target/release/deps/liba.rlib"), "utf8")).toBe("compiled");
  expect(seconds(clone, "a/lib.rs")).toBe(COMPILED);
  const compiledAt = statSync(path.join(clone, "native/target/release/deps/liba.rlib")).mtimeMs / 1000;
  expect(seconds(clone, "b/lib.rs")).toBeGreaterThanOrEqual(compiledAt);
  expect(seconds(clone, "c/lib.rs")).toBeGreaterThanOrEqual(compiledAt);
  // It says that a build is fresh, and was another checkout's.
  expect(existsSync(path.join(clone, "native/target/release/sluice-stamp"))).toBe(false);
});

it("leaves a checkout alone that has compiled something", () => {
  compiled();
  const clone = checkout("clone", { "a/lib.rs": "a" });
  write(path.join(clone, "native/target/release/deps/own.rlib"), "own");
  const own = seconds(clone, "a/lib.rs");
  restoreNativeBuild(clone);
  expect(seconds(clone, "a/lib.rs")).toBe(own);
  expect(existsSync(path.join(clone, "native/target/release/deps/liba.rlib"))).toBe(false);
});

it("finds nothing for other dependencies", () => {
  compiled();
  const clone = checkout("clone", { "a/lib.rs": "a" });
  writeFileSync(path.join(clone, "native", "Cargo.lock"), "another version");
  restoreNativeBuild(clone);
  expect(existsSync(path.join(clone, "native/target"))).toBe(false);
});

it("keeps the entries of a kind that were used last", () => {
  const from = path.join(folder, "from");
  write(path.join(from, "file"), "content");
  for (const key of ["one", "two"]) keepFolder("kind", key, from, 2);
  // The first is used again, so the second is the oldest.
  utimesSync(cacheFolder("kind", "two"), COMPILED, COMPILED);
  expect(takeFolder("kind", "one", path.join(folder, "taken"))).toBe(true);
  keepFolder("kind", "three", from, 2);
  expect(["one", "two", "three"].map((key) => existsSync(cacheFolder("kind", key)))).toEqual([true, false, true]);
  expect(takeFolder("kind", "two", path.join(folder, "again"))).toBe(false);
});
