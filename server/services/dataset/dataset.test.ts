import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DatasetSource } from "#server/contracts/dataset.ts";
import { auditEvents, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { duplicate } from "#server/services/workspace/duplicate.ts";
import { choose } from "#server/services/workspace-dataset/choose.ts";
import { list as listChosen } from "#server/services/workspace-dataset/list.ts";
import { mountsOf } from "#server/services/workspace-dataset/mounts.ts";
import { recordPrefetch } from "#server/services/workspace-dataset/record-prefetch.ts";
import { edit } from "./edit.ts";
import { list } from "./list.ts";
import { measure } from "./measure.ts";
import { recordSize } from "./record-size.ts";
import { register } from "./register.ts";
import { remove } from "./remove.ts";

let test: TestDatabase;
let world: World;
let root: string;
const before = process.env.SLUICE_STATE_DIR;

beforeAll(async () => {
  root = await realpath(await mkdtemp(path.join(tmpdir(), "sluice-datasets-")));
  process.env.SLUICE_STATE_DIR = root;
  resetEnv();
  test = await useTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(async () => {
  process.env.SLUICE_STATE_DIR = before;
  if (before === undefined) delete process.env.SLUICE_STATE_DIR;
  resetEnv();
  await rm(root, { recursive: true, force: true });
  await test.drop();
});

/** Makes a folder below the one that is set aside; a file of a thousand bytes lies in a folder of its own there. */
async function folder(name: string): Promise<string> {
  const at = path.join(root, "datasets", name);
  await mkdir(path.join(at, "part"), { recursive: true });
  await writeFile(path.join(at, "part", "numbers.bin"), Buffer.alloc(1000, 1));
  return at;
}

const refused = { code: "refused" };
const hidden = { code: "not-found" };
const volume = (claim: string): DatasetSource => ({ kind: "volume", claim });
const names = async ({ ctx }: Person) => (await list(ctx)).datasets.map(({ name }) => name);

describe("registering", () => {
  it("is for a team's lead in the own team, and for everybody an admin's", async () => {
    const { lead, member, outsider, admin, team } = world;
    await register(lead.ctx, { name: "of-team", teamId: team, source: volume("a") });
    await register(admin.ctx, { name: "of-all", source: volume("b") });
    for (const [person, teamId] of [[member, team] as const, [outsider, team] as const, [lead, undefined] as const]) {
      const input = { name: "no", teamId, source: volume("c") };
      await expect(register(person.ctx, input)).rejects.toMatchObject({ code: "forbidden" });
    }
    expect(await names(member)).toEqual(["of-all", "of-team"]);
    expect(await names(outsider)).toEqual(["of-all"]);
    expect(await names(admin)).toEqual(["of-all", "of-team"]);
  });

  it("shows where it lies to those who may change it alone", async () => {
    const seenBy = async (person: Person) =>
      (await list(person.ctx)).datasets.find(({ name }) => name === "of-team")?.source;
    expect(await seenBy(world.lead)).toEqual(volume("a"));
    expect(await seenBy(world.member)).toBeNull();
  });

  it("takes a name once for a team, and the same name for another", async () => {
    const again = { name: "of-team", source: volume("d") };
    await expect(register(world.lead.ctx, { ...again, teamId: world.team })).rejects.toMatchObject({
      code: "conflict",
    });
    await register(world.outsider.ctx, { ...again, teamId: world.otherTeam });
  });

  it("leaves exports and buckets, which nodes mount with their own rights, to admins", async () => {
    const source: DatasetSource = { kind: "nfs", server: "nas", path: "/export" };
    const input = { name: "nfs", teamId: world.team, source };
    await expect(register(world.lead.ctx, input)).rejects.toMatchObject({ code: "forbidden" });
    expect(await register(world.admin.ctx, input)).toMatchObject({ kind: "nfs", sizeBytes: null });
  });

  it("never mounts somebody's home: claims of workspaces are refused", async () => {
    const source = volume("ws-aaaaaaaaaaaaaaaaaaaaaaaaaa");
    const input = { name: "home", teamId: world.team, source };
    await expect(register(world.lead.ctx, input)).rejects.toMatchObject({ code: "invalid" });
  });
});

describe("a folder", () => {
  const tried = async (at: string, by: Person = world.admin, teamId?: string, writable = false) =>
    await register(by.ctx, {
      name: path.basename(at).toLowerCase(),
      teamId,
      writable,
      source: { kind: "folder", path: at },
    });

  it("lies where the operator has set some aside, links followed", async () => {
    await folder("public");
    await symlink("/etc", path.join(root, "datasets", "sly"));
    for (const at of ["/etc", root, path.join(root, "datasets"), path.join(root, "datasets", "sly")]) {
      await expect(tried(at), at).rejects.toMatchObject(refused);
    }
    await expect(tried(path.join(root, "datasets", "nothing"))).rejects.toThrow(/no folder/);
    const file = path.join(root, "datasets", "public", "part", "numbers.bin");
    await expect(tried(file)).rejects.toThrow(/is a file/);
  });

  it("of a lead lies where some is set aside for the team", async () => {
    await expect(tried(await folder("public"), world.lead, world.team)).rejects.toMatchObject(refused);
    await expect(tried(await folder("teams/nlp/theirs"), world.lead, world.team)).rejects.toMatchObject(refused);
    const own = await tried(await folder("teams/vision/own"), world.lead, world.team);
    expect(own).toMatchObject({ team: { name: "vision" }, kind: "folder", prefetch: true });
  });

  it("is not one that a workspace could replace by a link", async () => {
    await tried(await folder("shared"), world.admin, undefined, true);
    await folder("shared/inner");
    await expect(tried(path.join(root, "datasets", "shared", "inner"))).rejects.toMatchObject({ code: "conflict" });
    await folder("around/inner");
    await tried(path.join(root, "datasets", "around", "inner"));
    const around = path.join(root, "datasets", "around");
    await expect(tried(around, world.admin, undefined, true)).rejects.toMatchObject({ code: "conflict" });
    await tried(around);
  });

  it("is measured by the server, once an hour and when asked, and says why when it cannot be", async () => {
    const at = await folder("measured");
    const { id, sizeBytes } = await tried(at);
    expect(sizeBytes).toBeNull();
    while (await recordSize(world.system));
    const seen = async () => (await list(world.admin.ctx)).datasets.find((each) => each.id === id);
    expect(await seen()).toMatchObject({ sizeBytes: 1000, fileCount: 1, measureMessage: null });
    await writeFile(path.join(at, "more.bin"), Buffer.alloc(24));
    expect(await recordSize(world.system), "nothing is due").toBe(false);
    await measure(world.admin.ctx, { id });
    while (await recordSize(world.system));
    expect(await seen()).toMatchObject({ sizeBytes: 1024, fileCount: 2 });
    await rm(at, { recursive: true });
    const later = { ...world.system, now: () => new Date(Date.now() + 2 * 3_600_000) };
    while (await recordSize(later));
    expect((await seen())?.measureMessage).toContain(`There is no folder ${at}`);
    const forOthers = (await list(world.member.ctx)).datasets.find((each) => each.id === id);
    expect(forOthers?.measureMessage).toBe("Its folder cannot be read. Whoever registered it, or an admin, sees why.");
  });

  it("has its size from nobody else", async () => {
    const { id } = await tried(await folder("sized"));
    const change = { id, description: "", prefetch: true, sizeBytes: 5 };
    await expect(edit(world.admin.ctx, change)).rejects.toMatchObject({ code: "invalid" });
  });
});

it("an edit of what somebody else has changed meanwhile is refused, and one is told in the audit", async () => {
  const { lead, member, team } = world;
  const { id, version } = await register(lead.ctx, { name: "edited", teamId: team, source: volume("e") });
  const change = { id, description: "Cats", prefetch: false, sizeBytes: 7, version };
  await expect(edit(member.ctx, change)).rejects.toMatchObject({ code: "forbidden" });
  await expect(edit(world.outsider.ctx, change)).rejects.toMatchObject(hidden);
  expect(await edit(lead.ctx, change)).toMatchObject({ description: "Cats", sizeBytes: 7, version: 2 });
  await expect(edit(lead.ctx, change)).rejects.toMatchObject({ code: "conflict" });
  const [entry] = await test.db.select().from(auditEvents).where(eq(auditEvents.action, "dataset.edit"));
  expect(entry).toMatchObject({ subject: id, detail: { before: { sizeBytes: null }, after: { sizeBytes: 7 } } });
});

describe("a workspace", () => {
  const launch = (name: string, datasets: string[]) =>
    create(world.member.ctx, { name, image: "cuda-python", teamId: world.team, datasets });
  const made = async (name: string, teamId?: string) =>
    (await register(world.admin.ctx, { name, teamId, source: { kind: "folder", path: await folder(name) } })).id;

  it("mounts everybody's and its team's, and no other's, whoever launches it", async () => {
    const [all, own, other] = [
      await made("w-all"),
      await made("w-own", world.team),
      await made("w-x", world.otherTeam),
    ];
    await expect(launch("with others", [other])).rejects.toMatchObject(hidden);
    const { id } = await launch("with two", [own, all]);
    expect(await mountsOf(world.system, id)).toMatchObject([
      { name: "w-all", team: undefined, writable: false, prefetch: true },
      { name: "w-own", team: "vision" },
    ]);
    const copy = await duplicate(world.member.ctx, { id, name: "copy" });
    expect((await listChosen(world.lead.ctx, { id: copy.id })).datasets.map((each) => each.path)).toEqual([
      "~/datasets/w-all",
      "~/datasets/w-own",
    ]);
    await remove(world.admin.ctx, { id: all });
    expect(await mountsOf(world.system, id)).toMatchObject([{ name: "w-own" }]);
  });

  it("is told which launcher mounts what its own cannot, and nothing is launched", async () => {
    const { id } = await register(world.admin.ctx, { name: "w-nfs", source: { kind: "nfs", server: "n", path: "/e" } });
    await expect(launch("refused", [id])).rejects.toThrow(/launcher local cannot mount it, kubernetes can/);
    expect(await test.db.select().from(workspaces).where(eq(workspaces.name, "refused"))).toEqual([]);
  });

  it("takes no two of one name, and only its owner chooses", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member });
    const twins = [await made("w-twin"), await made("w-twin", world.team)];
    await expect(choose(world.member.ctx, { id, datasets: twins })).rejects.toMatchObject({ code: "conflict" });
    await expect(choose(world.lead.ctx, { id, datasets: [] })).rejects.toMatchObject({ code: "forbidden" });
    expect((await choose(world.member.ctx, { id, datasets: twins.slice(1) })).datasets).toHaveLength(1);
    expect((await choose(world.member.ctx, { id, datasets: [] })).datasets).toEqual([]);
  });

  it("tells how far a dataset is in the cache as long as this start is wanted, and that a reader fell silent", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member });
    const datasetId = await made("w-read");
    await choose(world.member.ctx, { id, datasets: [datasetId] });
    const of = { workspaceId: id, generation: 1, datasetId };
    const so = { state: "reading" as const, bytes: 400, totalBytes: 1000, message: null };
    expect(await recordPrefetch(world.system, of, so)).toBe(true);
    const seen = async (ctx = world.member.ctx) => (await listChosen(ctx, { id })).datasets[0]?.prefetch;
    expect(await seen()).toEqual(so);
    const later = { ...world.member.ctx, now: () => new Date(Date.now() + 60_000) };
    expect(await seen(later)).toMatchObject({ state: "interrupted", bytes: 400 });
    expect(await recordPrefetch(world.system, { ...of, generation: 2 }, so)).toBe(false);
    const inMemory = async () =>
      (await list(world.member.ctx)).datasets.find((each) => each.id === datasetId)?.inMemoryFor;
    expect(await inMemory()).toBe(0);
    expect(await recordPrefetch(world.system, of, { ...so, state: "done", bytes: 1000 })).toBe(true);
    expect(await inMemory()).toBe(1);
    await test.db.update(workspaces).set({ desired: "stopped", observed: "stopped" }).where(eq(workspaces.id, id));
    expect(await recordPrefetch(world.system, of, so)).toBe(false);
    expect(await inMemory()).toBe(0);
  });
});
