/** What a launcher sees of a server that ended by itself and runs again reaches the workspace's owner. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import type { Launcher } from "#server/launchers/launcher.ts";
import { list as noticesOf } from "#server/services/notice/list.ts";
import { makeWorkspace, makeWorld } from "#server/services/testing.ts";
import { startReconciler } from "./reconciler.ts";

let folder: string;
let database: TestDatabase;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-restarted-"));
  process.env.SLUICE_STATE_DIR = folder;
  resetEnv();
  database = await useTestDatabase({ max: 4 });
});
afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

it("tells it once, beside the news of its place, also after another broker took over", async () => {
  const world = await makeWorld(database.db);
  const { id } = await makeWorkspace(world, { owner: world.member });
  const row = async () => (await database.db.select().from(workspaces).where(eq(workspaces.id, id)))[0];
  await database.db.update(workspaces).set({ startedAt: new Date("2026-11-24T09:00:00Z") });
  let looks = 0;
  const launcher = {
    name: "local",
    observe: async () => {
      looks += 1;
      return {
        ...{ state: "running", endpoint: "http://127.0.0.1:1", handle: { launcher: "local", generation: 1 } },
        news: { sentence: "The node is silent." },
        restarted: { at: new Date("2026-11-24T10:00:00Z"), cause: "memory", sentence: "It ran out of memory." },
      };
    },
  } as Partial<Launcher> as Launcher;
  const bodies = async () => (await noticesOf(world.member.ctx, {})).notices.map(({ body }) => body);
  for (const broker of ["first", "second"]) {
    const before = looks;
    const reconciler = await startReconciler(database, { launchers: new Map([["local", launcher]]) });
    await expect.poll(() => looks, { timeout: 15_000 }).toBeGreaterThan(before + 1);
    await reconciler.stop();
    expect(await bodies(), broker).toEqual(["It ran out of memory."]);
  }
  expect(await row()).toMatchObject({ observed: "running", message: "The node is silent." });
}, 40_000);
