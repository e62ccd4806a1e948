import { afterAll, beforeAll, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { list } from "#server/services/audit/list.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { stop } from "#server/services/workspace/stop.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

it("tells who did what, newest first, page by page", async () => {
  const { id } = await create(world.member.ctx, { name: "audited", image: "cuda-python" });
  await stop(world.admin.ctx, { id });
  const all = await list(world.admin.ctx, { subject: id });
  expect(all.events).toMatchObject([
    { action: "workspace.stop", actorName: "Ada", subjectName: "audited", teamName: "vision" },
    { action: "workspace.create", actorName: "Max", subjectName: "audited" },
  ]);
  const first = await list(world.admin.ctx, { subject: id, limit: 1 });
  expect(first.events).toHaveLength(1);
  const second = await list(world.admin.ctx, { subject: id, limit: 1, before: first.next ?? 0 });
  expect(second).toMatchObject({ events: [{ action: "workspace.create" }], next: null });
});

it("filters by noun, and takes no wildcard from outside", async () => {
  expect((await list(world.admin.ctx, { action: "workspace." })).events.length).toBeGreaterThan(0);
  expect((await list(world.admin.ctx, { action: "%." })).events).toEqual([]);
});

it("shows a lead the own team only", async () => {
  const mine = await list(world.lead.ctx, { teamId: world.team });
  expect(new Set(mine.events.map((event) => event.teamId))).toEqual(new Set([world.team]));
  await expect(list(world.lead.ctx)).rejects.toMatchObject({ code: "forbidden" });
  await expect(list(world.lead.ctx, { teamId: world.otherTeam })).rejects.toMatchObject({ code: "forbidden" });
});

it("cannot be changed or emptied by anybody who is connected", async () => {
  await expect(test.sql`update audit_events set action = 'nothing'`).rejects.toThrow(/append-only/);
  await expect(test.sql`delete from audit_events`).rejects.toThrow(/append-only/);
  await expect(test.sql`truncate audit_events`).rejects.toThrow(/append-only/);
});
