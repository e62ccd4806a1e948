/** Two people edit the same setting of a workspace, or the same role: the second is told, and nothing of theirs is saved. */
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { datasets, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { newId } from "#server/ids.ts";
import { addMember } from "#server/services/team/add-member.ts";
import { get as getTeam } from "#server/services/team/get.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { add as share } from "#server/services/workspace-collaborator/add.ts";
import { list as collaboratorsOf } from "#server/services/workspace-collaborator/list.ts";
import { choose } from "#server/services/workspace-dataset/choose.ts";
import { list as datasetsOf } from "#server/services/workspace-dataset/list.ts";
import { list as variablesOf } from "#server/services/workspace-variable/list.ts";
import { set } from "#server/services/workspace-variable/set.ts";
import { get } from "./get.ts";
import { setGpuPolicy } from "./set-gpu-policy.ts";
import { setIdleLimit } from "./set-idle-limit.ts";
import { setSize } from "./set-size.ts";

let database: TestDatabase;
let world: World;
let id: string;

beforeAll(async () => {
  process.env.SLUICE_SECRETS_KEY = Buffer.alloc(32, 7).toString("base64url");
  // A launcher that mounts volumes and knows no bound of sizes.
  process.env.SLUICE_LAUNCHERS = "kubernetes";
  resetEnv();
  database = await useTestDatabase();
  world = await makeWorld(database.db);
  id = (await makeWorkspace(world, { owner: world.member })).id;
  await database.db.update(workspaces).set({ launcher: "kubernetes" }).where(eq(workspaces.id, id));
});
afterAll(async () => {
  delete process.env.SLUICE_SECRETS_KEY;
  delete process.env.SLUICE_LAUNCHERS;
  resetEnv();
  await database.drop();
});

/** Saves on the version that both have seen; the second, another value, is refused, and saved on the newest one. */
async function expectConflict(
  read: () => Promise<number>,
  save: (which: "first" | "second", version: number | undefined) => Promise<unknown>,
): Promise<void> {
  const seen = await read();
  await save("first", seen);
  await expect(save("second", seen)).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringMatching(/^Somebody else has changed .* meanwhile; nothing of yours is saved/) as string,
  });
  const now = await read();
  expect(now).toBe(seen + 1);
  await save("second", now);
  // A script that names none replaces whatever is there.
  await save("first", undefined);
  expect(await read()).toBe(seen + 3);
}

const versions = async () => (await get(world.member.ctx, { id })).versions;

it("the GPU policy, the idle limit and the size, each by itself", async () => {
  await expectConflict(
    async () => (await versions()).gpuPolicy,
    (which, version) =>
      setGpuPolicy(world.member.ctx, {
        ...{ id, version, defaultAmount: "0.5" },
        gpuPolicy: which === "first" ? "never" : "ask",
      }),
  );
  expect(await versions()).toEqual({ gpuPolicy: 4, idleLimit: 1, size: 1 });
  await expectConflict(
    async () => (await versions()).idleLimit,
    (which, version) => setIdleLimit(world.member.ctx, { id, version, idleSeconds: which === "first" ? 600 : 1200 }),
  );
  await expectConflict(
    async () => (await versions()).size,
    (which, version) => setSize(world.member.ctx, { id, version, size: which === "first" ? "Small" : "Large" }),
  );
  expect(await get(world.member.ctx, { id })).toMatchObject({ gpuPolicy: "never", ownIdleSeconds: 600 });
});

it("the datasets", async () => {
  const dataset = newId("dst");
  await database.db.insert(datasets).values({
    ...{ id: dataset, name: "words", description: "", source: { kind: "volume", claim: "words" } },
    ...{ writable: false, prefetch: false },
  });
  await expectConflict(
    async () => (await datasetsOf(world.member.ctx, { id })).version,
    (which, version) => choose(world.member.ctx, { id, version, datasets: which === "first" ? [dataset] : [] }),
  );
  expect((await datasetsOf(world.member.ctx, { id })).datasets).toMatchObject([{ name: "words" }]);
});

it("a variable; and a new one does not replace one of its name", async () => {
  const name = "DATA";
  await set(world.member.ctx, { id, name, value: "/old", version: 0 });
  const found = async () => (await variablesOf(world.member.ctx, { id })).variables.find((each) => each.name === name);
  await expectConflict(
    async () => (await found())?.version ?? 0,
    (which, version) => set(world.member.ctx, { id, name, version, value: `/${which}` }),
  );
  const again = set(world.member.ctx, { id, name, value: "/new", version: 0 });
  await expect(again).rejects.toMatchObject({
    ...{ code: "conflict", message: "This workspace has a variable DATA already. Change that one." },
  });
  expect((await found())?.value).toBe("/first");
});

it("the role of a collaborator, and one in a team", async () => {
  const person = world.outsider.email;
  await share(world.member.ctx, { id, person, role: "viewer" });
  await expectConflict(
    async () => (await collaboratorsOf(world.member.ctx, { id })).collaborators[0]?.version ?? 0,
    (which, version) => share(world.member.ctx, { id, person, version, role: which === "first" ? "editor" : "viewer" }),
  );
  const teamId = world.team;
  const { email } = world.member;
  await expectConflict(
    async () =>
      (await getTeam(world.admin.ctx, { id: teamId })).members.find((each) => each.email === email)?.version ?? 0,
    (which, version) =>
      addMember(world.admin.ctx, { teamId, email, version, role: which === "first" ? "member" : "lead" }),
  );
});
