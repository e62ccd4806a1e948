import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { auditEvents, images, imageVersions, workspaceEvents, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
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
/** Runs it as an installation on a cluster whose settings name images for these environments. */
async function onCluster<T>(environments: string[], what: () => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-images-"));
  const file = path.join(folder, "kubernetes.json");
  const size = { cpu: { request: "1", limit: "1" }, memory: { request: "1Gi", limit: "1Gi" } };
  const settings = {
    ...{ sizes: { small: size }, home: { size: "1Gi" }, team: {} },
    environments: Object.fromEntries(environments.map((name) => [name, { image: "a:1", size: "small" }])),
    network: { from: [{ addresses: "10.0.0.0/8" }], to: [] },
  };
  await writeFile(file, JSON.stringify(settings));
  vi.stubEnv("SLUICE_LAUNCHERS", "kubernetes");
  vi.stubEnv("SLUICE_KUBERNETES_SETTINGS", file);
  resetEnv();
  try {
    return await what();
  } finally {
    vi.unstubAllEnvs();
    resetEnv();
    await rm(folder, { recursive: true });
  }
}
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
  const [next] = await versions();
  await setState(world.admin.ctx, { id: next?.id ?? "", state: "approved" });
  expect((await versions()).map(({ state }) => state)).toEqual(["approved", "approved", "approved"]);
});

it("tells what is inside once it is built", async () => {
  const id = world.imageVersionId;
  expect((await getVersion(world.outsider.ctx, { id })).packages).toBeNull();
  const packages = [{ name: "numpy", version: "2.4.0", licence: "BSD-3-Clause" }];
  await test.db.update(imageVersions).set({ packages }).where(eq(imageVersions.id, id));
  expect(await getVersion(world.outsider.ctx, { id })).toMatchObject({ packages, packageCount: 1 });
  await expect(getVersion(world.outsider.ctx, { id: newId("imv") })).rejects.toMatchObject({ code: "not-found" });
});

it("is listed with its start time, who has approved it, what it holds and which versions came before", async () => {
  const id = world.imageVersionId;
  const approvedAt = new Date(Date.now() + 60_000);
  await test.db.update(imageVersions).set({ state: "retired" });
  await test.db.update(imageVersions).set({ state: "approved" }).where(eq(imageVersions.id, id));
  const card = async () => (await list(world.member.ctx)).images.find(({ version }) => version.id === id);
  expect(await card()).toMatchObject({ startSeconds: null, older: [], version: { approved: null, packageCount: 1 } });
  // Three starts of 4, 10 and 12 s; one that has not come to its end, and an older one of the same workspace, count not.
  // The one of 10 s had its environment built in two minutes, which no later one waits for.
  const began = new Date(Date.now() - 3_600_000);
  const after = (seconds: number) => new Date(began.getTime() + seconds * 1000);
  for (const [seconds, building] of [
    [4, 0],
    [130, 120],
    [12, 0],
    [undefined, 0],
  ] as const) {
    const { id: workspaceId } = await makeWorkspace(world, { owner: world.member });
    const ended = seconds === undefined ? { observed: "starting" as const } : { startedAt: after(seconds) };
    await test.db
      .update(workspaces)
      .set({ generation: 2, startedAt: null, ...ended })
      .where(eq(workspaces.id, workspaceId));
    const event = { workspaceId, kind: "step-started" as const, message: "" };
    await test.db.insert(workspaceEvents).values([
      { ...event, generation: 1, step: "environment", at: after(-500) },
      { ...event, generation: 2, step: "environment", at: began },
      { ...event, generation: 2, kind: "step-done", step: "environment", at: after(building) },
      { ...event, generation: 2, step: "jupyter", at: after(building + 3) },
    ]);
  }
  expect((await card())?.startSeconds).toBeCloseTo(10, 3);
  const [old] = await test.db.select().from(imageVersions).where(eq(imageVersions.id, id));
  if (old === undefined) throw new Error("no version");
  const next = { ...old, id: newId("imv"), version: "next", approvedBy: world.admin.id, approvedAt };
  await test.db.insert(imageVersions).values({ ...next, check: "passed" });
  const { images } = await list(world.member.ctx);
  expect(images.find(({ version }) => version.id === next.id)).toMatchObject({
    version: { approved: { by: world.admin.name, at: approvedAt.toISOString() } },
    older: [{ id, version: old.version }],
  });
});

it("an environment that the cluster has no image for is in no catalogue, and one that was proposed as an image is", async () => {
  const names = async () => (await list(world.member.ctx)).images.map(({ name }) => name);
  const there = await names();
  expect(there).toContain("cuda-python");
  expect(await onCluster(["jax"], names)).not.toContain("cuda-python");
  await expect(onCluster(["jax"], () => launch("nowhere"))).rejects.toThrow('There is no environment "cuda-python"');
  expect(await onCluster(["cuda-python"], names)).toContain("cuda-python");
  const reference = `registry.example/own@sha256:${"0".repeat(64)}`;
  const proposal = { title: "Own", description: "", source: { kind: "image", reference } };
  const imageId = newId("img");
  await test.db.insert(images).values({ id: imageId, name: "own", title: "Own", description: "" });
  const version = { version: "1", state: "approved", buildState: "ready", spec: {}, proposal } as const;
  await test.db.insert(imageVersions).values({ id: newId("imv"), imageId, ...version });
  expect(await onCluster([], names)).toEqual(["own"]);
});
