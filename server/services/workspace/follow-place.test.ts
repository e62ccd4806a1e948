import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import type { PlaceNews } from "#server/launchers/launcher.ts";
import { list as noticesOf } from "#server/services/notice/list.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { followPlace } from "./follow-place.ts";
import { restart } from "./restart.ts";

let database: TestDatabase;
let world: World;
beforeAll(async () => {
  database = await useTestDatabase();
  world = await makeWorld(database.db);
});
afterAll(async () => await database.drop());

const leaving: PlaceNews = { sentence: "The node a is being emptied.", movesAfterMs: 600_000 };
const silent: PlaceNews = { sentence: "The node a no longer answers." };

async function running() {
  const { id } = await makeWorkspace(world, { owner: world.member });
  const row = async () => {
    const [found] = await world.db.select().from(workspaces).where(eq(workspaces.id, id));
    if (found === undefined) throw new Error("no row");
    return found;
  };
  const follow = async (news: PlaceNews | undefined, minutes = 0) => {
    const ctx = { ...world.system, now: () => new Date(Date.now() + minutes * 60_000) };
    await followPlace(ctx, { row: await row(), news });
  };
  const announced = async () => {
    const { notices } = await noticesOf(world.member.ctx, {});
    return notices.filter(({ kind, href }) => kind === "workspace-move" && href.endsWith(id)).length;
  };
  return { id, row, follow, announced };
}

it("tells what is to be known of a node, and takes it back", async () => {
  const { row, follow, announced } = await running();
  await follow(silent);
  expect(await row()).toMatchObject({ message: silent.sentence, movesAt: null });
  await follow(undefined);
  expect(await row()).toMatchObject({ message: null, movesAt: null, generation: 1 });
  expect(await announced()).toBe(0);
});

it("announces a move once, and starts the workspace anew when its time has come", async () => {
  const { row, follow, announced } = await running();
  await follow(leaving);
  const { movesAt } = await row();
  expect(movesAt?.getTime()).toBeGreaterThan(Date.now() + 590_000);
  await follow(leaving, 5);
  expect(await row()).toMatchObject({ movesAt, message: leaving.sentence, generation: 1 });
  expect(await announced()).toBe(1);
  await follow(leaving, 11);
  expect(await row()).toMatchObject({ movesAt: null, message: null, generation: 2, observed: "pending" });
});

it("does not move when the node stays, or when its owner was first", async () => {
  const stays = await running();
  await stays.follow(leaving);
  await stays.follow(undefined, 9);
  await stays.follow(undefined, 11);
  expect(await stays.row()).toMatchObject({ movesAt: null, message: null, generation: 1 });
  expect(await stays.announced()).toBe(0);

  const restarted = await running();
  await restarted.follow(leaving);
  await restart(world.member.ctx, { id: restarted.id });
  expect(await restarted.announced()).toBe(0);
  await restarted.follow(leaving, 11);
  expect(await restarted.row()).toMatchObject({ generation: 2, observed: "pending" });
});

it("is the broker's to tell", async () => {
  const { row } = await running();
  await expect(followPlace(world.admin.ctx, { row: await row(), news: silent })).rejects.toThrow("may not do this");
});
