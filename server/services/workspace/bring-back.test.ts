import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { list as noticesOf } from "#server/services/notice/list.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { bringBack } from "./bring-back.ts";
import { stop } from "./stop.ts";

let database: TestDatabase;
let world: World;
beforeAll(async () => {
  database = await useTestDatabase();
  world = await makeWorld(database.db);
});
afterAll(async () => await database.drop());

const reason = "The node a no longer answers, and the workspace ended with it.";

async function running() {
  const { id } = await makeWorkspace(world, { owner: world.member });
  const row = async () => {
    const [found] = await world.db.select().from(workspaces).where(eq(workspaces.id, id));
    if (found === undefined) throw new Error("no row");
    return found;
  };
  const told = async () => {
    const { notices } = await noticesOf(world.member.ctx, {});
    return notices.filter(({ href }) => href.endsWith(id)).map(({ kind, title, body }) => ({ kind, title, body }));
  };
  return { id, row, told };
}

it("starts a workspace anew whose place is lost, once, and tells its owner what is gone", async () => {
  const { row, told } = await running();
  const lost = await row();
  await bringBack(world.system, { row: lost, reason });
  await bringBack(world.system, { row: lost, reason });
  expect(await row()).toMatchObject({ observed: "pending", generation: lost.generation + 1, message: null });
  expect(await told()).toEqual([
    {
      kind: "workspace-restarted",
      title: `${lost.name} ended with its machine and was started again`,
      body: `${reason} It is started again on another node. The notebooks' variables are gone, files are kept.`,
    },
  ]);
});

it("leaves one alone that its owner has stopped meanwhile", async () => {
  const { id, row, told } = await running();
  const lost = await row();
  await stop(world.member.ctx, { id });
  await bringBack(world.system, { row: lost, reason });
  expect(await row()).toMatchObject({ desired: "stopped", generation: lost.generation });
  expect(await told()).toEqual([]);
});

it("is the broker's to do", async () => {
  const { row } = await running();
  await expect(bringBack(world.admin.ctx, { row: await row(), reason })).rejects.toThrow("may not do this");
});
