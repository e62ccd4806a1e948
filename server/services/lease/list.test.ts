import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { leaseRequests, leases } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { list, listAll } from "./list.ts";

let test: TestDatabase;
let world: World;
/** The leases of a workspace, latest first. */
let ids: string[];
let workspaceId: string;

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
  workspaceId = (await makeWorkspace(world, { owner: world.member })).id;
  // Two were granted in the same moment.
  ids = await Promise.all([0, 1, 1, 2, 3].map((hour) => endedLease(new Date(Date.now() - hour * 3_600_000))));
  ids = [ids[0], ...[ids[1], ids[2]].sort().reverse(), ids[3], ids[4]].map((id) => id ?? "");
});
afterAll(() => test.drop());

async function endedLease(grantedAt: Date): Promise<string> {
  const [id, requestId] = [newId("lea"), randomUUID()];
  const whose = { workspaceId, teamId: world.team, userId: world.member.id };
  const what = { ...whose, gpuType: "soft", milli: 500, memoryBytes: 2 ** 30 };
  const owner = { kind: "process" as const, pid: 1, startTime: 1 };
  await test.db.insert(leaseRequests).values({
    ...{ ...what, id: requestId, idempotencyKey: requestId, owner, state: "granted", createdAt: grantedAt },
    ...{ lastPolledAt: grantedAt, waitUntil: grantedAt },
  });
  await test.db.insert(leases).values({
    ...{ ...what, id, requestId, gpuId: world.gpuIds[0], serverId: world.serverId, owner, epoch: 1 },
    ...{ state: "ended", grantedAt, ownerSeenAt: grantedAt, expiresAt: grantedAt, endedAt: grantedAt },
  });
  return id;
}

it("tells a history to its first lease, a page at a time", async () => {
  const ask = (after?: string) => list(world.member.ctx, { which: "all", workspaceId, limit: 2, after });
  const first = await ask();
  expect([first.leases.map(({ id }) => id), first.total]).toEqual([ids.slice(0, 2), 5]);
  const second = await ask(first.next ?? "");
  expect([second.leases.map(({ id }) => id), second.total]).toEqual([ids.slice(2, 4), 5]);
  const last = await ask(second.next ?? "");
  expect([last.leases.map(({ id }) => id), last.next]).toEqual([ids.slice(4), null]);
});

it("of others' leases it tells nothing, whatever it is asked to go on from", async () => {
  const { leases: seen, total } = await list(world.outsider.ctx, { which: "all" });
  expect([seen, total]).toEqual([[], 0]);
  await expect(list(world.outsider.ctx, { which: "all", after: ids[0] })).rejects.toThrow(/^after: No row/);
});

it("reads all of them for a file", async () => {
  const all: string[] = [];
  for await (const { id } of listAll(world.lead.ctx, { which: "ended", workspaceId })) all.push(id);
  expect(all).toEqual(ids);
});
