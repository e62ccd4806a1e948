import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Context } from "#server/context.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { deleteFiles } from "#server/services/workspace/delete-files.ts";
import { remove } from "#server/services/workspace/remove.ts";
import { restore } from "#server/services/workspace/restore.ts";
import { giveUpFiles, openWorkspaces } from "./state.ts";

const DAY = 86_400_000;

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

const later = (ctx: Context, ms: number): Context => ({ ...ctx, now: () => new Date(Date.now() + ms) });

/** A stopped workspace that its owner has removed. */
async function removed() {
  const { id } = await makeWorkspace(world, { owner: world.member, running: false });
  await remove(world.member.ctx, { id });
  return { id };
}

describe("the files of a removed workspace", () => {
  const open = async (id: string, now: Date) => (await openWorkspaces(test.db, now)).includes(id);

  it("stay until their period ends; then the reconciler deletes them", async () => {
    const { id } = await removed();
    expect(await open(id, new Date())).toBe(false);
    expect(await open(id, new Date(Date.now() + 7 * DAY + 1000))).toBe(true);
    await deleteFiles(world.member.ctx, { id });
    expect(await open(id, new Date())).toBe(true);
  });

  it("stay if the workspace is restored or removed again while the reconciler starts", async () => {
    const { id } = await removed();
    const end = new Date(Date.now() + 7 * DAY + 1000);
    await restore(world.member.ctx, { id });
    expect(await giveUpFiles(test.db, { id }, end)).toBe(false);
    await remove(later(world.member.ctx, DAY), { id });
    expect(await giveUpFiles(test.db, { id }, end)).toBe(false);
    expect(await giveUpFiles(test.db, { id }, new Date(Date.now() + 8 * DAY + 1000))).toBe(true);
    await expect(restore(world.member.ctx, { id })).rejects.toMatchObject({ code: "not-found" });
  });
});
