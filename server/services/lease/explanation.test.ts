/** Who reads what of a request: a colleague nothing of what its person does in other teams, whether it waits or is decided. */
import { randomUUID } from "node:crypto";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { gpus, leaseRequests, memberships, quotas } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { explanation } from "./explanation.ts";
import { request } from "./request.ts";

let test: TestDatabase;
let world: World;

beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
  // Max is in both teams, Kim in one of them.
  await test.db.insert(memberships).values({ teamId: world.otherTeam, userId: world.member.id, role: "member" });
  await test.db.update(quotas).set({ guaranteedMilli: 0, limitMilli: 2000 });
  await ask(world.otherTeam, { amount: "1", label: "secret.ipynb" });
  await ask(world.otherTeam, { amount: "1", label: "other.ipynb" });
});
afterAll(() => test.drop());

/** Max asks in a workspace of this team; the id of the request. */
async function ask(teamId: string, { amount = "1", label = "train.ipynb", waitSeconds = 600 } = {}): Promise<string> {
  const { id: workspaceId } = await makeWorkspace(world, { owner: world.member, teamId });
  const principal = { kind: "workspace" as const, workspaceId, teamId, userId: world.member.id };
  const owner = { kind: "kernel" as const, pid: 1, startTime: 1, label };
  const requestId = randomUUID();
  await request({ ...world.system, principal }, { requestId, amount, owner, waitSeconds });
  const [row] = await test.db.select().from(leaseRequests).where(eq(leaseRequests.idempotencyKey, requestId));
  return row?.id ?? "";
}

it("a request that was refused: to a colleague without what its person was told of other teams", async () => {
  const id = await ask(world.team, { amount: "0.25", waitSeconds: 0 });
  const own = await explanation(world.member.ctx, { id });
  expect(own).toMatchObject({ state: "refused", reason: { holders: [{ who: "you" }, { who: "you" }] } });
  const told = await explanation(world.colleague.ctx, { id });
  expect(told).toMatchObject({ state: "refused", reason: { rule: own.reason?.rule } });
  expect(JSON.stringify(told)).not.toMatch(/secret|other\.ipynb/);
});

it("a request that waits: to its person as theirs, to a colleague without what they hold elsewhere", async () => {
  const id = await ask(world.team, { amount: "0.25" });
  const own = (await explanation(world.member.ctx, { id })).reason;
  expect(own?.holders).toContainEqual(expect.objectContaining({ who: "you", label: "secret.ipynb" }));
  for (const { ctx } of [world.colleague, world.lead]) {
    const told = await explanation(ctx, { id });
    expect(told.state).toBe("queued");
    expect(told.reason?.holders?.map(({ who }) => who)).toEqual(["team nlp", "team nlp"]);
    expect(JSON.stringify(told)).not.toMatch(/secret|other\.ipynb|you/);
  }
  expect(JSON.stringify(await explanation(world.admin.ctx, { id }))).toContain("secret.ipynb");
  await expect(explanation(world.outsider.ctx, { id })).rejects.toMatchObject({ code: "forbidden" });
});

it("a request that waits: with what would be granted at once of each other type, and only of those", async () => {
  await test.db.insert(gpus).values({
    ...{
      id: newId("gpu"),
      serverId: world.serverId,
      uuid: "GPU-a100-0",
      name: "a100-0",
      gpuType: "a100",
      model: "A100",
    },
    ...{ computeCapability: "8.0", memoryBytes: 40 * 2 ** 30, state: "active" as const, profile: {} },
  });
  await test.db.insert(quotas).values([
    { teamId: world.team, gpuType: "a100", guaranteedMilli: 0, limitMilli: 750 },
    // Promised, and no device of it is there.
    { teamId: world.team, gpuType: "h200", guaranteedMilli: 0, limitMilli: 1000 },
  ]);
  const id = await ask(world.team, { amount: "0.25" });
  const { gpuType, elsewhere, reason } = await explanation(world.member.ctx, { id });
  expect({ gpuType, elsewhere }).toEqual({ gpuType: "soft", elsewhere: [{ gpuType: "a100", fitsNowMilli: 750 }] });
  expect(reason?.gpuType).toBe("soft");
  await test.db
    .update(leaseRequests)
    .set({ needs: { minCudaVersion: 12_080 } })
    .where(eq(leaseRequests.id, id));
  expect((await explanation(world.member.ctx, { id })).elsewhere).toEqual([]);
  const pinned = { needs: null, pinnedGpuId: world.gpuIds[0] };
  await test.db.update(leaseRequests).set(pinned).where(eq(leaseRequests.id, id));
  expect((await explanation(world.member.ctx, { id })).elsewhere).toEqual([]);
});
