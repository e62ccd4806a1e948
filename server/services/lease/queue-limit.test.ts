import { randomUUID } from "node:crypto";
import { and, eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { leaseRequests } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { request } from "./request.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(async () => test.drop());

it("holds at most 64 requests of one workspace in the queue, whatever owners a program makes up", async () => {
  const asker = async () => {
    const { id: workspaceId } = await makeWorkspace(world, { owner: world.member });
    const principal = { kind: "workspace" as const, workspaceId, teamId: world.team, userId: world.member.id };
    const ask = async (pid: number, waitSeconds = 600) => {
      const owner = { kind: "kernel" as const, pid, startTime: 1 };
      return await request(
        { ...world.system, principal },
        { requestId: randomUUID(), amount: "1", owner, waitSeconds },
      );
    };
    return { workspaceId, ask };
  };
  const other = await asker();
  expect(await other.ask(1)).toMatchObject({ state: "granted" });
  const hostile = await asker();
  const answers = await Promise.allSettled(Array.from({ length: 70 }, (_, pid) => hostile.ask(pid + 1)));
  expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(64);
  const queued = and(eq(leaseRequests.workspaceId, hostile.workspaceId), eq(leaseRequests.state, "queued"));
  expect(await test.db.$count(leaseRequests, queued)).toBe(64);
  await expect(hostile.ask(1000)).rejects.toMatchObject({
    code: "refused",
    message: expect.stringContaining("already has 64 requests in the queue") as string,
  });
  // A request in the place of one's earlier request, one that does not wait, and another workspace's are decided.
  expect(await hostile.ask(1)).toMatchObject({ state: "queued" });
  expect(await hostile.ask(1001, 0)).toMatchObject({ state: "refused" });
  expect(await other.ask(2)).toMatchObject({ state: "queued" });
}, 120_000);
