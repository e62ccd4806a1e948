import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { runRustTests } from "./rust.ts";

let folder: string;
let home: string | undefined;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-rust-"));
  // The seconds of programs are kept there.
  home = process.env.HOME;
  process.env.HOME = folder;
});
afterEach(async () => {
  process.env.HOME = home;
  await rm(folder, { recursive: true, force: true });
});

/** Runs a shell script in place of a compiled test program; `alone` is its answer when one test is asked for. */
async function outcomeOf(whole: string, alone = "exit 1") {
  const executable = path.join(folder, "program");
  await writeFile(executable, `#!/bin/sh\nif [ "$1" = --exact ]; then\n${alone}\nfi\n${whole}\n`);
  await chmod(executable, 0o755);
  await writeFile(path.join(folder, "rust-programs.json"), JSON.stringify([{ name: "crate/it", executable, folder }]));
  return await runRustTests(folder, folder, () => undefined, { parallel: 1 });
}

it("a test that fails twice is told with what it printed", async () => {
  const told = await outcomeOf(`cat << 'END'
test a ... FAILED
---- a stdout ----
thread 'a' panicked at src/a.rs:1:
left: 1
---- b stdout ----
of another
failures:
test result: FAILED. 2 passed; 1 failed;
END
exit 1`);
  expect(told.failures).toEqual(["crate/it a\nthread 'a' panicked at src/a.rs:1:\nleft: 1"]);
});

const PASSES_ALONE = 'echo "test a ... ok"; echo "test result: ok. 1 passed; 0 failed;"; exit 0';

it("a test that passes at its second try is named", async () => {
  const told = await outcomeOf(
    'echo "test a ... FAILED"; echo "test result: FAILED. 2 passed; 1 failed;"; exit 1',
    PASSES_ALONE,
  );
  expect(told).toMatchObject({ passed: 3, failed: 0, flaky: ["crate/it a"] });
});

it("a program that crashes after a failed test is a failure, although that test passes alone", async () => {
  const told = await outcomeOf('echo "test a ... FAILED"; kill -SEGV $$', PASSES_ALONE);
  expect(told).toMatchObject({ failed: 1, flaky: ["crate/it a"], note: expect.stringContaining("crate/it") as string });
});
