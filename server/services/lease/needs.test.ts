import { randomUUID } from "node:crypto";
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { gpus, imageVersions } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { bothNeeds } from "./asking.ts";
import { request } from "./request.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(async () => test.drop());

it("what an environment needs of a device binds every request from it", async () => {
  await world.db.update(gpus).set({ profile: sql`${gpus.profile} || '{"driverVersion": 12080}'` });
  const { id: workspaceId } = await makeWorkspace(world, { owner: world.member });
  const principal = { kind: "workspace" as const, workspaceId, teamId: world.team, userId: world.member.id };
  const ask = async (minCudaVersion: number) => {
    const needs = JSON.stringify({ minCudaVersion });
    await world.db
      .update(imageVersions)
      .set({ spec: sql`${imageVersions.spec} || jsonb_build_object('needs', ${needs}::jsonb)` });
    const owner = { kind: "kernel" as const, pid: minCudaVersion, startTime: 1 };
    return await request(
      { ...world.system, principal },
      { requestId: randomUUID(), amount: "0.25", owner, waitSeconds: 0 },
    );
  };
  expect(await ask(13_000)).toMatchObject({
    state: "refused",
    reason: { rule: "needs", message: "No soft device has what this environment needs (CUDA 13.0 or later)." },
  });
  expect(await ask(12_080)).toMatchObject({ state: "granted" });
});

it("of what environment and program need the stricter counts", () => {
  const environment = { zone: "a", maxRttUs: 300, minCudaVersion: 12_080 };
  expect(bothNeeds(environment, { maxRttUs: 500, minCudaVersion: 13_000 })).toEqual({
    ...{ zone: "a", maxRttUs: 300, minCudaVersion: 13_000 },
  });
  expect(bothNeeds(null, undefined)).toBeNull();
  expect(bothNeeds(environment, undefined)).toEqual(environment);
});
