import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { auditEvents, imageVersions } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { start } from "#server/services/workspace/start.ts";
import { getVersion } from "./get-version.ts";
import { list } from "./list.ts";
import { listVersions } from "./list-versions.ts";
import { register } from "./register.ts";
import { setState } from "./set-state.ts";

let test: TestDatabase;
let world: World;

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

const versions = async () => (await listVersions(world.admin.ctx)).versions;
const launch = (name: string) => create(world.member.ctx, { name, image: "cuda-python" });

it("a retired environment is launched no more, workspaces that have it start again, and it can be approved", async () => {
  const { id: workspace } = await makeWorkspace(world, { owner: world.member, running: false });
  const id = world.imageVersionId;
  await expect(setState(world.lead.ctx, { id, state: "retired" })).rejects.toMatchObject({ code: "forbidden" });
  expect(await setState(world.admin.ctx, { id, state: "retired" })).toMatchObject({ offered: false, workspaces: 1 });
  expect((await list(world.member.ctx)).images).toEqual([]);
  await expect(launch("too late")).rejects.toMatchObject({ code: "not-found" });
  expect(await start(world.member.ctx, { id: workspace })).toMatchObject({ desired: "running" });
  expect(await setState(world.admin.ctx, { id, state: "approved" })).toMatchObject({ offered: true });
  await launch("in time");
  const told = await test.db.select().from(auditEvents).where(eq(auditEvents.subject, id));
  expect(told.map(({ action }) => action)).toEqual(["image.retire", "image.approve"]);
});

it("its next version stays retired, and no older one takes its place", async () => {
  await register(world.system, { folder: "cuda-python" });
  const [newest, oldest] = (await versions()).filter(({ image }) => image.name === "cuda-python");
  expect([newest?.offered, oldest?.offered, oldest?.state]).toEqual([true, false, "approved"]);
  const old = { id: oldest?.id ?? "", state: "retired" } as const;
  await expect(setState(world.admin.ctx, old)).rejects.toMatchObject({ code: "conflict" });
  await setState(world.admin.ctx, { id: newest?.id ?? "", state: "retired" });
  expect((await list(world.member.ctx)).images).toEqual([]);
  // A definition that has changed: the same one again is no new version.
  await test.db
    .update(imageVersions)
    .set({ version: "before" })
    .where(eq(imageVersions.id, newest?.id ?? ""));
  await register(world.system, { folder: "cuda-python" });
  expect((await versions()).map(({ state, newest: last }) => [state, last])).toEqual([
    ["retired", true],
    ["retired", false],
    ["retired", false],
  ]);
});

it("tells what is inside once it is built", async () => {
  const id = world.imageVersionId;
  expect((await getVersion(world.outsider.ctx, { id })).packages).toBeNull();
  const packages = [{ name: "numpy", version: "2.4.0", licence: "BSD-3-Clause" }];
  await test.db.update(imageVersions).set({ packages }).where(eq(imageVersions.id, id));
  expect(await getVersion(world.outsider.ctx, { id })).toMatchObject({ packages, packageCount: 1 });
  await expect(getVersion(world.outsider.ctx, { id: newId("imv") })).rejects.toMatchObject({ code: "not-found" });
});
