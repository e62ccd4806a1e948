/** A long queue, page by page. */
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { PoolQueueInput, QueueEntry } from "#server/contracts/gpu-server.ts";
import { leaseRequests } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { queue } from "./queue.ts";

const EACH = 600;

let database: TestDatabase;
let world: World;

beforeAll(async () => {
  database = await useTestDatabase();
  world = await makeWorld(database.db);
  for (const [owner, teamId, name] of [
    [world.member, world.team, "digits"],
    [world.outsider, world.otherTeam, "100_%"],
  ] as const) {
    const id = newId("req");
    const { id: workspaceId } = await makeWorkspace(world, { owner, teamId, name });
    await database.db.insert(leaseRequests).values({
      ...{
        id,
        idempotencyKey: id,
        workspaceId,
        teamId,
        userId: owner.id,
        gpuType: "soft",
        milli: 1000,
        memoryBytes: 0,
      },
      owner: { kind: "kernel", pid: 1, startTime: 1, label: `${name}.ipynb` },
      ...{ state: "cancelled", lastPolledAt: new Date(), waitUntil: new Date() },
    });
  }
  // Ten at each moment, so that ids decide between them.
  await database.db.execute(sql`
    insert into lease_requests (id, workspace_id, team_id, user_id, idempotency_key, gpu_type, milli, memory_bytes, owner,
      state, created_at, last_polled_at, wait_until)
    select 'req-' || translate(substr(md5(id || n || type), 1, 26), '0189', 'xyzw'), workspace_id, team_id, user_id,
      n || type, type, milli, 0, owner, 'queued', now() - n / 10 * interval '1.0004 seconds', now(), now() + interval '1 hour'
    from lease_requests, generate_series(1, ${EACH}::int) n, unnest(array['soft', 'a100']) type where state = 'cancelled'`);
});
afterAll(async () => await database.drop());

/** All pages of an answer, each of which tells how many match on all of them. */
async function pages(asked: PoolQueueInput, count: number): Promise<QueueEntry[]> {
  const rows: QueueEntry[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const page = await queue(world.admin.ctx, { ...asked, ...(after && { after }) });
    expect(page.rowCount).toBe(count);
    rows.push(...page.rows);
    after = page.next;
  }
  return rows;
}

it("gives each who waits once, type by type, the oldest first, with places among all of a type", async () => {
  // Two devices are free: one of each team is about to be granted, and waits for nothing.
  const rows = await pages({ limit: 150 }, 4 * EACH);
  expect(new Set(rows.map(({ requestId }) => requestId)).size).toBe(rows.length);
  const byType = Map.groupBy(rows, ({ gpuType }) => gpuType);
  expect([...byType.keys()]).toEqual(["a100", "soft"].filter((type) => byType.has(type)));
  const soft = byType.get("soft") ?? [];
  expect(soft.length).toBe(2 * EACH - 2);
  const since = soft.map((row) => row.waitingSince);
  expect(since).toEqual([...since].sort());
  expect(new Set(soft.map(({ position }) => position)).size).toBe(soft.length);
  expect(soft.every((row) => row.of === soft.length && row.reason.length > 20)).toBe(true);
  // Whoever is far back has no estimate here.
  expect(soft.filter(({ likelySeconds }) => likelySeconds !== null).every(({ position }) => position <= 50)).toBe(true);
  expect((await queue(world.admin.ctx, { gpuType: "soft", format: "csv" })).rows).toEqual(soft);
});

it("finds words of whatever case, each anywhere, and takes no sign in them for a pattern", async () => {
  expect(await pages({ gpuType: "soft", search: "DIGITS ipynb max", limit: 200 }, EACH)).toHaveLength(EACH - 1);
  expect((await queue(world.admin.ctx, { search: "100_%" })).rowCount).toBe(2 * EACH);
  expect((await queue(world.admin.ctx, { search: "d_gits" })).rowCount).toBe(0);
  expect((await queue(world.lead.ctx, { search: "100_%" })).rowCount).toBe(0);
});

it("refuses a place that no page has named", async () => {
  for (const after of ["", "soft", "soft now req-1", "soft 1 req-'"]) {
    await expect(queue(world.admin.ctx, { after })).rejects.toMatchObject({ code: "invalid" });
  }
});
