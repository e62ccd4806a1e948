import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { withFileLock } from "./file-lock.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-lock-"));
});
afterAll(async () => await rm(folder, { recursive: true }));

it("lets one in at a time, and the others when it is done", async () => {
  const file = path.join(folder, "one");
  const lines: string[] = [];
  const options = { onLine: (line: string) => lines.push(line), waiting: "waiting" };
  let inside = 0;
  let most = 0;
  const work = async () => {
    inside += 1;
    most = Math.max(most, inside);
    await sleep(30);
    inside -= 1;
  };
  await Promise.all([1, 2, 3].map(() => withFileLock(file, options, work)));
  expect(most).toBe(1);
  expect(lines).toContain("waiting");
});

it("is free again after its holder failed", async () => {
  const file = path.join(folder, "failed");
  const options = { onLine: () => undefined, waiting: "waiting" };
  const fail = withFileLock(file, options, async () => await Promise.reject(new Error("no disk")));
  await expect(fail).rejects.toThrow("no disk");
  expect(await withFileLock(file, options, async () => 1)).toBe(1);
});

it("is void when its holder is dead, also when another process has got its pid", async () => {
  const file = path.join(folder, "dead");
  await writeFile(file, JSON.stringify({ pid: process.pid, startTime: 1 }));
  expect(await withFileLock(file, { onLine: () => undefined, waiting: "waiting" }, async () => 1)).toBe(1);
});
