import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { missingTools } from "#scripts/lib/toolchain.ts";

const before = process.env.PATH;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-tools-"));
  process.env.PATH = folder;
});
afterEach(async () => {
  process.env.PATH = before;
  await rm(folder, { recursive: true, force: true });
});

/** A program of that name that prints this. */
async function program(name: string, prints: string): Promise<void> {
  const file = path.join(folder, name);
  await writeFile(file, `#!/bin/sh\necho '${prints}'\n`);
  await chmod(file, 0o755);
}

test("a missing tool is named with the command that installs it", () => {
  const [rust, linker] = missingTools(["rust", "linker"]);
  expect(rust).toMatch(/^Rust 1\.88 or newer is missing\. Install it with: {2}curl .*rustup/);
  expect(linker).toMatch(/apt-get install -y build-essential$/);
});

test("one that is too old is as good as missing", async () => {
  await program("cargo", "cargo 1.85.1 (d73d2caf9 2024-12-31)");
  expect(missingTools(["rust"])).toHaveLength(1);
  await program("cargo", "cargo 1.88.0 (873a06493 2025-05-10)");
  expect(missingTools(["rust"])).toEqual([]);
});

test("Python 3.9 is too old, 3.10 and later will do", async () => {
  await program("python3", "Python 3.9");
  expect(missingTools(["python"])).toHaveLength(1);
  await program("python3", "Python 3.12");
  expect(missingTools(["python"])).toEqual([]);
});
