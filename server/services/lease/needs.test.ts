import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { deviceProfile } from "#server/contracts/control.ts";
import { environmentFile } from "#server/contracts/image.ts";
import type { DeviceNeeds } from "#server/contracts/lease.ts";
import { gpus, imageVersions } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { meets } from "#server/scheduler/allowed.ts";
import { definitionFolders } from "#server/services/image/register.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { bothNeeds } from "./asking.ts";
import { request } from "./request.ts";
import { status } from "./status.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(async () => test.drop());

it("what an environment needs of a device binds every request from it", async () => {
  const profile = JSON.stringify({ driverVersion: 12_080, driver: "570.124.06" });
  await world.db.update(gpus).set({ profile: sql`${gpus.profile} || ${profile}::jsonb` });
  const { id: workspaceId } = await makeWorkspace(world, { owner: world.member });
  const principal = { kind: "workspace" as const, workspaceId, teamId: world.team, userId: world.member.id };
  let pid = 0;
  const ask = async (needed: DeviceNeeds) => {
    const needs = JSON.stringify(needed);
    await world.db
      .update(imageVersions)
      .set({ spec: sql`${imageVersions.spec} || jsonb_build_object('needs', ${needs}::jsonb)` });
    const owner = { kind: "kernel" as const, pid: ++pid, startTime: 1 };
    return await request(
      { ...world.system, principal },
      { requestId: randomUUID(), amount: "0.25", owner, waitSeconds: 0 },
    );
  };
  expect(await ask({ minCudaVersion: 13_000 })).toMatchObject({
    state: "refused",
    reason: { rule: "needs", message: "No soft device has what this environment needs (CUDA 13.0 or later)." },
  });
  expect(await ask({ minDriverVersion: "570.133" })).toMatchObject({
    state: "refused",
    reason: { message: "No soft device has what this environment needs (driver 570.133 or later)." },
  });
  // Nor does %gpu offer what no device of the environment's needs has.
  const atOnce = async () => {
    const { free } = await status({ ...world.system, principal }, {});
    return free.map(({ gpuType, grantedAtOnceMilli }) => [gpuType, grantedAtOnceMilli]);
  };
  expect(await atOnce()).toEqual([["soft", 0]]);
  expect(await ask({ minCudaVersion: 12_080 })).toMatchObject({ state: "granted" });
  expect(await atOnce()).toEqual([["soft", 750]]);
  expect(await ask({ minDriverVersion: "570.86.15" })).toMatchObject({ state: "granted" });
});

it("the software GPU, as it is recorded, serves every environment that comes with Sluice", async () => {
  const read = async (file: string): Promise<unknown> => JSON.parse(await readFile(file, "utf8"));
  const { driverVersion } = deviceProfile.parse(await read("native/client/profiles/soft.json"));
  const undemanding: string[] = [];
  for (const folder of await definitionFolders()) {
    const { needs } = environmentFile.parse(await read(`server/environments/${folder}/environment.json`));
    if (needs === undefined) undemanding.push(folder);
    expect(meets(needs, { cudaVersion: driverVersion }), folder).toBe(true);
  }
  // What has no CUDA in it.
  expect(undemanding).toEqual(["minimal"]);
});

it("of what environment and program need the stricter counts", () => {
  const environment = { zone: "a", maxRttUs: 300, minCudaVersion: 12_080 };
  expect(bothNeeds(environment, { maxRttUs: 500, minCudaVersion: 13_000 })).toEqual({
    ...{ zone: "a", maxRttUs: 300, minCudaVersion: 13_000 },
  });
  expect(bothNeeds({ minDriverVersion: "580.65" }, { minDriverVersion: "580.9" })).toEqual({
    minDriverVersion: "580.65",
  });
  expect(bothNeeds(null, undefined)).toBeNull();
  expect(bothNeeds(environment, undefined)).toEqual(environment);
});
