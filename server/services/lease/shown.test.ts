import { randomUUID } from "node:crypto";
import { eq, sql } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Context } from "#server/context.ts";
import { leaseRequests } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { explanation } from "./explanation.ts";
import { request } from "./request.ts";

let test: TestDatabase;
let world: World;
let person: Context;
let first: string;

async function ask(pid: number): Promise<string> {
  const { id } = await makeWorkspace(world, { owner: world.member });
  const principal = { kind: "workspace" as const, workspaceId: id, teamId: world.team, userId: world.member.id };
  const owner = { kind: "kernel" as const, pid, startTime: 1, label: "train.ipynb" };
  const key = randomUUID();
  await request({ ...world.system, principal }, { requestId: key, amount: "1", owner, waitSeconds: 600 });
  const [row] = await test.db.select().from(leaseRequests).where(eq(leaseRequests.idempotencyKey, key));
  return row?.id ?? "";
}

async function why(id: string, at: number) {
  return await explanation({ ...person, now: () => new Date(at) }, { id });
}

beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
  person = world.admin.ctx;
  await ask(1);
  first = await ask(2);
});
afterAll(async () => test.drop());

it("tells of a short queue as it is now, and of a long one as it was up to two seconds ago", async () => {
  const began = Date.now();
  const cancelOne = async () =>
    await test.db.execute(sql`update lease_requests set state = 'cancelled' where id = (
      select id from lease_requests where state = 'queued' and id <> ${first} limit 1)`);
  await ask(3);
  expect(await why(first, began)).toMatchObject({ asOf: new Date(began).toISOString(), of: 2 });
  await cancelOne();
  expect(await why(first, began)).toMatchObject({ of: 1 });

  await test.db.execute(sql`
    insert into lease_requests (id, workspace_id, team_id, user_id, idempotency_key, gpu_type, milli, memory_bytes,
      guaranteed_only, owner, state, created_at, last_polled_at, wait_until, max_devices)
    select 'req-' || lpad(n::text, 26, '0'), workspace_id, team_id, user_id, gen_random_uuid(), gpu_type, milli,
      memory_bytes, 0, owner, 'queued', created_at, last_polled_at, wait_until, 1
    from lease_requests, generate_series(1, 1000) n where id = ${first}`);
  const asOf = new Date(began).toISOString();
  expect(await why(first, began)).toMatchObject({ asOf, of: 1001 });
  await cancelOne();
  expect(await why(first, began + 900)).toMatchObject({ asOf, of: 1001 });
  const later = new Date(began + 2100).toISOString();
  expect(await why(first, began + 2100)).toMatchObject({ asOf: later, of: 1000 });
  // Who has come since is in no reading yet, and nobody sees a moment that lies before the question's.
  const fresh = await ask(4);
  expect(await why(fresh, began + 2200)).toMatchObject({ asOf: new Date(began + 2200).toISOString(), of: 1001 });
});
