import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { newId } from "#server/ids.ts";
import type { Launcher } from "#server/launchers/launcher.ts";
import { LocalLauncher } from "#server/launchers/local/local-launcher.ts";
import { workspacePaths } from "#server/launchers/local/workspace-files.ts";
import { logger } from "#server/log.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { listRemoved } from "#server/services/workspace/list-removed.ts";
import { remove } from "#server/services/workspace/remove.ts";
import { measureOnce, startKeptFilesLimit } from "./kept-files-limit.ts";

const MIB = 1024 ** 2;
const log = logger("test");

let stateDir: string;
let launchers: ReadonlyMap<string, Launcher>;
let test: TestDatabase;
let world: World;
beforeAll(async () => {
  stateDir = await mkdtemp(path.join(tmpdir(), "sluice-kept-"));
  launchers = new Map([["local", new LocalLauncher({ stateDir, wheel: undefined })]]);
  test = await useTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(async () => {
  await test.drop();
  await rm(stateDir, { recursive: true });
});

it("measures the files of a removed workspace once for each removal, folders without rights included", async () => {
  const id = newId("ws");
  const { home } = workspacePaths(stateDir, id);
  const write = async (name: string) => await writeFile(path.join(home, "closed", name), Buffer.alloc(3 * MIB, 1));
  await mkdir(path.join(home, "closed"), { recursive: true });
  await write("one");
  await chmod(path.join(home, "closed"), 0);
  const measure = measureOnce(launchers, log, new AbortController().signal);
  const kept = { id, launcher: "local", filesKeptUntil: new Date(1) };
  const first = await measure(kept);
  expect(first).toBeGreaterThanOrEqual(3 * MIB);
  expect(first).toBeLessThan(4 * MIB);
  await chmod(path.join(home, "closed"), 0o700);
  await write("two");
  expect(await measure(kept)).toBe(first);
  expect(await measure({ ...kept, filesKeptUntil: new Date(2) })).toBeGreaterThanOrEqual(6 * MIB);
});

it("counts files that cannot be measured as the limit, and files of launchers that measure none as 0", async () => {
  const broken = { filesBytes: () => Promise.reject(new Error("no disk")) } as unknown as Launcher;
  const measure = measureOnce(new Map([["broken", broken]]), log, new AbortController().signal);
  expect(await measure({ id: "a", launcher: "broken", filesKeptUntil: new Date(1) })).toBe(100 * 1024 ** 3);
  expect(await measure({ id: "b", launcher: "kubernetes", filesKeptUntil: new Date(1) })).toBe(0);
});

it("gives up the oldest files after the limit is lowered", async () => {
  for (const name of ["first", "second", "third"]) {
    const { id } = await makeWorkspace(world, { owner: world.member, name, running: false });
    await remove(world.member.ctx, { id });
  }
  process.env.SLUICE_REMOVED_WORKSPACES = "1";
  resetEnv();
  const loop = startKeptFilesLimit(test, { launchers, log });
  try {
    const kept = async () => (await listRemoved(world.member.ctx)).workspaces.map(({ name }) => name);
    await expect.poll(kept, { timeout: 10_000 }).toEqual(["third"]);
  } finally {
    await loop.stop();
    delete process.env.SLUICE_REMOVED_WORKSPACES;
    resetEnv();
  }
});
