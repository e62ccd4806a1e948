/** Starts that wait keep others of their launcher waiting, up to as many as it takes at once, and none of another's. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import type { Launcher } from "#server/launchers/launcher.ts";
import { makeWorkspace, makeWorld } from "#server/services/testing.ts";
import { startReconciler } from "./reconciler.ts";

let folder: string;
let database: TestDatabase;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-starts-"));
  process.env.SLUICE_STATE_DIR = folder;
  resetEnv();
  database = await useTestDatabase({ max: 4 });
});
afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

it("begins so many starts as each launcher takes at once, and the next when one has come to its end", async () => {
  const world = await makeWorld(database.db);
  /** Each start waits until it is ended. */
  const makeLauncher = async (name: string, startsAtOnce: number) => {
    for (let index = 0; index < 4; index++) {
      const { id } = await makeWorkspace(world, { owner: world.member });
      await database.db.update(workspaces).set({ launcher: name, observed: "pending" }).where(eq(workspaces.id, id));
    }
    const under: (() => void)[] = [];
    const launcher = {
      ...{ name, startsAtOnce },
      observe: async () => ({ state: "stopped" }),
      isolation: async () => ({ isolated: true }),
      ensure: async (_spec: unknown, _report: unknown, signal: AbortSignal) =>
        await new Promise((_, reject) => {
          const end = () => reject(new Error("It is over."));
          under.push(end);
          signal.addEventListener("abort", end);
        }),
      logs: async () => [],
      stop: async () => undefined,
    } as Partial<Launcher> as Launcher;
    return { launcher, under };
  };
  const slow = await makeLauncher("slow", 2);
  const wide = await makeLauncher("wide", 32);
  const launchers = new Map([slow, wide].map(({ launcher }) => [launcher.name, launcher]));
  const reconciler = await startReconciler(database, { launchers });
  const begun = () => [slow.under.length, wide.under.length];
  await expect.poll(begun, { timeout: 15_000 }).toEqual([2, 4]);
  slow.under[0]?.();
  await expect.poll(begun, { timeout: 15_000 }).toEqual([3, 4]);
  await reconciler.stop();
}, 40_000);
