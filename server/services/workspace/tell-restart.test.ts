import { and, eq, like } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { auditEvents, workspaceEvents, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import type { Restarted } from "#server/launchers/launcher.ts";
import { list as noticesOf } from "#server/services/notice/list.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { tellRestart } from "./tell-restart.ts";

let database: TestDatabase;
let world: World;
beforeAll(async () => {
  database = await useTestDatabase();
  world = await makeWorld(database.db);
});
afterAll(async () => await database.drop());

const STARTED = new Date("2026-11-24T09:00:00Z");
const outOfMemory = (at: string): Restarted => ({
  ...{ at: new Date(at), cause: "memory" },
  sentence: `It ran out of memory at ${at}.`,
});

async function running() {
  const { id } = await makeWorkspace(world, { owner: world.member });
  await world.db.update(workspaces).set({ startedAt: STARTED }).where(eq(workspaces.id, id));
  const row = async () => {
    const [found] = await world.db.select().from(workspaces).where(eq(workspaces.id, id));
    if (found === undefined) throw new Error("no row");
    return found;
  };
  const tell = async (restarted: Restarted) => await tellRestart(world.system, { row: await row(), restarted });
  const told = async () => {
    const { notices } = await noticesOf(world.member.ctx, {});
    const events = await world.db
      .select({ kind: workspaceEvents.kind, message: workspaceEvents.message })
      .from(workspaceEvents)
      .where(and(eq(workspaceEvents.workspaceId, id), like(workspaceEvents.step, "restart-%")))
      .orderBy(workspaceEvents.seq);
    const audited = await world.db.select().from(auditEvents).where(eq(auditEvents.subject, id));
    return {
      notices: notices.filter(({ href }) => href.endsWith(id)).map(({ kind, title, body }) => ({ kind, title, body })),
      events,
      audited: audited.filter(({ action }) => action === "workspace.tell-restart").length,
    };
  };
  return { id, row, tell, told };
}

it("tells that one program was ended for memory while the workspace stayed", async () => {
  const { row, tell, told } = await running();
  await tell({ ...outOfMemory("2026-11-24T10:00:00Z"), cause: "program" });
  const { notices, events } = await told();
  expect(notices[0]?.title).toBe(`${(await row()).name} ran out of memory, and a program was ended`);
  expect(events[0]?.message).toBe("Ran out of memory, and a program was ended");
});

it("tells a restart once, by a notice and among the steps, and the next one again", async () => {
  const { row, tell, told } = await running();
  const [first, second] = [outOfMemory("2026-11-24T10:00:00Z"), outOfMemory("2026-11-24T11:00:00Z")];
  await tell(first);
  await tell(first);
  const { name } = await row();
  const notice = {
    kind: "workspace-restarted",
    title: `${name} ran out of memory and was started again`,
    body: first.sentence,
  };
  const steps = ({ sentence }: Restarted) => [
    { kind: "step-started", message: "Ran out of memory and was started again" },
    { kind: "step-done", message: sentence },
  ];
  expect(await told()).toEqual({ notices: [notice], events: steps(first), audited: 1 });
  await tell(second);
  await tell(second);
  expect(await told()).toEqual({
    notices: [{ ...notice, body: second.sentence }, notice],
    events: [...steps(first), ...steps(second)],
    audited: 2,
  });
  expect(await row()).toMatchObject({ observed: "running", message: null, generation: 1 });
});

it("tells nothing of what ended before the workspace ran, or of one that is no longer wanted", async () => {
  const starting = await running();
  await starting.tell(outOfMemory("2026-11-24T08:59:00Z"));
  expect(await starting.told()).toEqual({ notices: [], events: [], audited: 0 });
  const before = await starting.row();
  await world.db.update(workspaces).set({ desired: "stopped" }).where(eq(workspaces.id, starting.id));
  await tellRestart(world.system, { row: before, restarted: outOfMemory("2026-11-24T10:00:00Z") });
  expect(await starting.told()).toEqual({ notices: [], events: [], audited: 0 });
});

it("is the broker's to tell", async () => {
  const { row } = await running();
  const restarted = outOfMemory("2026-11-24T10:00:00Z");
  await expect(tellRestart(world.admin.ctx, { row: await row(), restarted })).rejects.toThrow("may not do this");
});
