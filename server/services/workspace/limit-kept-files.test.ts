import { and, eq } from "drizzle-orm";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Context } from "#server/context.ts";
import { auditEvents, workspaces } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { aboveLimits, limitKeptFiles } from "#server/services/workspace/limit-kept-files.ts";
import { listRemoved } from "#server/services/workspace/list-removed.ts";
import { remove } from "#server/services/workspace/remove.ts";
import { restore } from "#server/services/workspace/restore.ts";

const GIB = 1024 ** 3;

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());
beforeEach(async () => {
  await test.db.update(workspaces).set({ filesKeptUntil: null });
});
afterEach(() => {
  delete process.env.SLUICE_REMOVED_WORKSPACES;
  delete process.env.SLUICE_REMOVED_FILES_GIB;
  resetEnv();
});

const set = (name: "SLUICE_REMOVED_WORKSPACES" | "SLUICE_REMOVED_FILES_GIB", value: number) => {
  process.env[name] = String(value);
  resetEnv();
};
let seconds = 0;
/** A stopped, removed workspace; each is removed a second after the previous one. */
async function removed(owner: Person = world.member, by: Person = owner): Promise<string> {
  const { id } = await makeWorkspace(world, { owner, name: `kept ${++seconds}`, running: false });
  const at = Date.now() - 3_600_000 + seconds * 1_000;
  const ctx: Context = { ...by.ctx, now: () => new Date(at) };
  await remove(ctx, { id });
  return id;
}
const keptBy = async (person: Person) => (await listRemoved(person.ctx)).workspaces.map(({ id }) => id);
const deletions = async (id: string) =>
  await test.db
    .select({ actorKind: auditEvents.actorKind, detail: auditEvents.detail })
    .from(auditEvents)
    .where(and(eq(auditEvents.subject, id), eq(auditEvents.action, "workspace.delete-files")));

it("finds removed workspaces above a limit, never the newest", () => {
  const sized = (...bytes: number[]) => bytes.map((each, index) => ({ id: `${index}`, bytes: each }));
  expect(aboveLimits(sized(1, 1, 1), { count: 3, bytes: 3 })).toEqual([]);
  expect(aboveLimits(sized(1, 1, 1), { count: 2, bytes: 3 })).toEqual(["2"]);
  expect(aboveLimits(sized(1, 2, 1), { count: 3, bytes: 2 })).toEqual(["1", "2"]);
  expect(aboveLimits(sized(5, 0), { count: 3, bytes: 2 })).toEqual(["1"]);
  expect(aboveLimits([], { count: 1, bytes: 0 })).toEqual([]);
});

describe("the files of removed workspaces", () => {
  it("are limited in number per owner: the oldest are deleted, with an audit entry", async () => {
    set("SLUICE_REMOVED_WORKSPACES", 2);
    const other = await removed(world.colleague);
    const [oldest, second] = [await removed(), await removed()];
    const third = await removed(world.member, world.lead);
    expect(await keptBy(world.member)).toEqual([second, third]);
    expect(await keptBy(world.colleague)).toEqual([other]);
    await expect(restore(world.member.ctx, { id: oldest })).rejects.toMatchObject({ code: "not-found" });
    const detail = expect.objectContaining({ reason: "limit of removed workspaces" }) as object;
    expect(await deletions(oldest)).toEqual([{ actorKind: "user", detail }]);
    expect(await deletions(second)).toEqual([]);
  });

  it("are limited in bytes per owner: the oldest are deleted, and others stay", async () => {
    set("SLUICE_REMOVED_FILES_GIB", 2);
    const others = [await removed(world.colleague), await removed(world.colleague)];
    const mine = [await removed(), await removed(), await removed()];
    const measured: string[] = [];
    const measure = (bytes: number) => async (each: { id: string }) => {
      measured.push(each.id);
      return bytes;
    };
    expect(await limitKeptFiles(world.system, measure(GIB / 2))).toBe(0);
    expect(measured.toSorted()).toEqual([...others, ...mine].toSorted());
    expect(await limitKeptFiles(world.system, measure(GIB))).toBe(1);
    expect(await keptBy(world.member)).toEqual(mine.slice(1));
    expect(await deletions(mine[0] ?? "")).toEqual([{ actorKind: "system", detail: expect.anything() as object }]);
    expect(await limitKeptFiles(world.system, measure(3 * GIB))).toBe(2);
    expect([await keptBy(world.member), await keptBy(world.colleague)]).toEqual([mine.slice(2), others.slice(1)]);
  });

  it("are limited by the system principal only", async () => {
    await expect(limitKeptFiles(world.admin.ctx, async () => 0)).rejects.toMatchObject({ code: "forbidden" });
  });
});
