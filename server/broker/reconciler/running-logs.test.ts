/** Lines of running workspaces on a real database; the launcher prints what the test says. */
import { and, asc, eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { workspaceEvents, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import type { Launcher } from "#server/launchers/launcher.ts";
import { logger } from "#server/log.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { RunningLogs } from "./running-logs.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

const START = new Date("2026-11-24T10:00:00Z");
const after = (ms: number) => new Date(START.getTime() + ms);

async function written(id: string): Promise<string[]> {
  const lines = and(eq(workspaceEvents.workspaceId, id), eq(workspaceEvents.step, "jupyter"));
  const rows = await test.db.select().from(workspaceEvents).where(lines).orderBy(asc(workspaceEvents.seq));
  return rows.map(({ message }) => message);
}

async function aWorkspace(): Promise<string> {
  const { id } = await makeWorkspace(world, { owner: world.member });
  await test.db.update(workspaces).set({ startedAt: START }).where(eq(workspaces.id, id));
  return id;
}

const logsOf = (followLog: Launcher["followLog"]) =>
  new RunningLogs(test.db, new Map([["local", { followLog }]]), logger("test"));

it("goes on after the newest line, whoever wrote it", async () => {
  const id = await aWorkspace();
  const asked: Date[] = [];
  const logs = logsOf(async (_, since, onLine) => {
    asked.push(since);
    onLine(`line ${asked.length}`, after(asked.length));
  });
  for (let time = 0; time < 2; time++) {
    logs.follow(id);
    await logs.stop();
  }
  expect(asked).toEqual([START, after(1)]);
  expect(await written(id)).toEqual(["line 1", "line 2"]);
});

it("reads one workspace once however many follow it, until it is stopped", async () => {
  const id = await aWorkspace();
  let open = 0;
  const logs = logsOf(async (_id, _since, onLine, signal) => {
    open += 1;
    onLine(`opened ${open}`, after(1));
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    open -= 1;
  });
  logs.follow(id);
  await expect.poll(() => written(id), { timeout: 20_000, interval: 25 }).toEqual(["opened 1"]);
  logs.follow(id);
  await logs.stop();
  expect(open).toBe(0);
  expect(await written(id)).toEqual(["opened 1"]);
});

it("keeps the newest lines of a start, and reads nothing of one that does not run", async () => {
  const id = await aWorkspace();
  let round = 0;
  const logs = logsOf(async (_id, since, onLine) => {
    round += 1;
    for (let line = 1; line <= 1500; line++) onLine(`${round}: ${line}`, new Date(since.getTime() + line));
  });
  for (let time = 0; time < 2; time++) {
    logs.follow(id);
    await logs.stop();
  }
  const lines = await written(id);
  expect([lines.length, lines[0], lines.at(-1)]).toEqual([2000, "1: 1001", "2: 1500"]);
  await test.db.update(workspaces).set({ desired: "stopped", observed: "stopped" }).where(eq(workspaces.id, id));
  logs.follow(id);
  await logs.stop();
  expect(round).toBe(2);
});
