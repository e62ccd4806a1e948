import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { type ExactMemory, exactMemory } from "./workspace-memory.ts";

const MIB = 1024 ** 2;
const isRoot = process.getuid?.() === 0;
/** Another user than the owner of the measured process. */
const AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];

/** A process of root with `mib` of its own memory. */
async function hog(mib: number): Promise<number> {
  const child = spawn("python3", ["-c", `kept = bytearray(b"x") * (${mib} << 20); print(1, flush=True); input()`]);
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child.pid ?? 0;
}

it("counts the memory of a process by its pages", async () => {
  const { anonymousBytes } = await exactMemory(await hog(64));
  expect(anonymousBytes).toBeGreaterThan(64 * MIB);
  expect(anonymousBytes).toBeLessThan(96 * MIB);
});

it("counts the whole memory of a process whose pages cannot be read", async () => {
  const pid = isRoot ? await hog(64) : 1;
  const program = `
    import { readFileSync } from "node:fs";
    import { exactMemory } from ${JSON.stringify(path.join(import.meta.dirname, "workspace-memory.ts"))};
    let code = "readable";
    try { readFileSync("/proc/${pid}/smaps_rollup"); } catch (error) { code = error.code; }
    console.log(JSON.stringify({ code, ...(await exactMemory(${pid})) }));`;
  const [command = "", ...args] = [
    ...(isRoot ? AS_NOBODY : []),
    process.execPath,
    "--input-type=module",
    "-e",
    program,
  ];
  const { stdout } = await promisify(execFile)(command, args);
  const seen = JSON.parse(stdout) as ExactMemory & { code: string };
  expect(seen.code).toMatch(/^E(ACCES|PERM)$/);
  const resident = Number(/^RssAnon:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
  expect(resident).toBeGreaterThan(isRoot ? 64 * MIB : 0);
  expect(Math.abs(seen.anonymousBytes - resident)).toBeLessThan(MIB);
});

it("counts nothing of a process that has ended", async () => {
  expect(await exactMemory(2 ** 30)).toEqual({ pid: 2 ** 30, anonymousBytes: 0, sharedBytes: 0 });
});
