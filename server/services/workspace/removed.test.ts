import { eq } from "drizzle-orm";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Context } from "#server/context.ts";
import { auditEvents, teams, workspaces } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { toSluiceError } from "#server/errors.ts";
import { archive } from "#server/services/team/archive.ts";
import { makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { deleteFiles } from "#server/services/workspace/delete-files.ts";
import { get } from "#server/services/workspace/get.ts";
import { list } from "#server/services/workspace/list.ts";
import { listRemoved } from "#server/services/workspace/list-removed.ts";
import { remove } from "#server/services/workspace/remove.ts";
import { restore } from "#server/services/workspace/restore.ts";

const DAY = 86_400_000;

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());
afterEach(() => {
  delete process.env.SLUICE_REMOVED_WORKSPACE_DAYS;
  resetEnv();
});

const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error: unknown) => toSluiceError(error).message,
  );
const code = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error: unknown) => toSluiceError(error).code,
  );
const later = (ctx: Context, ms: number): Context => ({ ...ctx, now: () => new Date(Date.now() + ms) });
const row = async (id: string) => {
  const [found] = await test.db.select().from(workspaces).where(eq(workspaces.id, id));
  return found;
};
let counter = 0;
/** A stopped workspace that its owner has removed. */
async function removed(owner: Person = world.member, teamId = world.team) {
  const name = `analysis ${++counter}`;
  const { id } = await makeWorkspace(world, { owner, name, teamId, running: false });
  await remove(owner.ctx, { id });
  return { id, name };
}
const listedFor = async (person: Person) => (await listRemoved(person.ctx)).workspaces.map(({ id }) => id);

describe("a removed workspace", () => {
  it("is only in the list of removed workspaces, with the end of its files", async () => {
    const { id, name } = await removed();
    expect(await code(get(world.member.ctx, { id }))).toBe("not-found");
    const { workspaces: shown } = await list(world.member.ctx, { search: name });
    expect(shown).toEqual([]);
    const mine = (await listRemoved(world.member.ctx)).workspaces.find((each) => each.id === id);
    expect(mine).toMatchObject({ name, owner: { name: "Max" }, team: { name: "vision" } });
    const days = (Date.parse(mine?.filesKeptUntil ?? "") - Date.now()) / DAY;
    expect(days).toBeCloseTo(7, 2);
  });

  it("is listed for its owner, leads of its team and admins", async () => {
    const { id } = await removed();
    for (const person of [world.member, world.lead, world.admin]) expect(await listedFor(person)).toContain(id);
    for (const person of [world.colleague, world.outsider]) expect(await listedFor(person)).not.toContain(id);
  });

  it("does not block its name", async () => {
    const { name } = await removed();
    expect(await code(create(world.member.ctx, { name, image: "cuda-python" }))).toBe("done");
  });

  it("does not block archiving its team after its processes end", async () => {
    const { id } = await removed(world.outsider, world.otherTeam);
    await test.db.update(workspaces).set({ observed: "stopping" }).where(eq(workspaces.id, id));
    expect(await code(archive(world.admin.ctx, { id: world.otherTeam }))).toBe("conflict");
    await test.db.update(workspaces).set({ observed: "stopped" }).where(eq(workspaces.id, id));
    expect(await code(archive(world.admin.ctx, { id: world.otherTeam }))).toBe("done");
    expect(await refusal(restore(world.admin.ctx, { id }))).toBe(
      "Team nlp is archived. Ask an admin to restore the team first.",
    );
    await test.db.update(teams).set({ archivedAt: null }).where(eq(teams.id, world.otherTeam));
    expect(await code(restore(world.admin.ctx, { id }))).toBe("done");
  });

  it("keeps no files with a period of 0, and none of a test workspace", async () => {
    const { id: tested } = await makeWorkspace(world, { owner: world.member });
    await remove(world.system, { id: tested });
    process.env.SLUICE_REMOVED_WORKSPACE_DAYS = "0";
    resetEnv();
    const { id } = await removed();
    for (const each of [tested, id]) {
      expect(await code(restore(world.member.ctx, { id: each }))).toBe("not-found");
      expect((await row(each))?.filesKeptUntil).toBeNull();
    }
  });
});

describe("restoring", () => {
  it("brings it back stopped, in the audit, and no longer among the removed", async () => {
    const { id, name } = await removed();
    expect(await restore(world.member.ctx, { id })).toMatchObject({ name, desired: "stopped", observed: "stopped" });
    expect(await listedFor(world.member)).not.toContain(id);
    const actions = await test.db
      .select()
      .from(auditEvents)
      .where(eq(auditEvents.subject, id))
      .orderBy(auditEvents.seq);
    expect(actions.map((event) => [event.action, event.detail])).toEqual([
      ["workspace.remove", expect.objectContaining({ name, filesKeptUntil: expect.any(String) as string })],
      ["workspace.restore", { name }],
    ]);
  });

  it("is refused where the owner has another workspace of that name, and takes another name", async () => {
    const { id, name } = await removed();
    await makeWorkspace(world, { owner: world.member, name });
    expect(await refusal(restore(world.lead.ctx, { id }))).toBe(
      "name: Its owner has a workspace of this name already. Choose another name.",
    );
    expect(await restore(world.lead.ctx, { id, name: `${name} again` })).toMatchObject({ name: `${name} again` });
  });

  it("is for its owner, leads and admins; to others it does not exist", async () => {
    const { id } = await removed();
    for (const { ctx } of [world.colleague, world.outsider]) {
      expect(await code(restore(ctx, { id }))).toBe("not-found");
      expect(await code(deleteFiles(ctx, { id }))).toBe("not-found");
    }
    expect(await code(restore(world.lead.ctx, { id }))).toBe("done");
  });

  it("is not possible after the period, or after the files are deleted", async () => {
    const [one, two] = [await removed(), await removed()];
    expect(await code(restore(later(world.member.ctx, 7 * DAY + 1000), { id: one.id }))).toBe("not-found");
    expect((await listRemoved(later(world.member.ctx, 7 * DAY + 1000))).workspaces).toEqual([]);
    await deleteFiles(world.lead.ctx, { id: two.id });
    expect(await code(restore(world.member.ctx, { id: two.id }))).toBe("not-found");
    const [last] = await test.db
      .select()
      .from(auditEvents)
      .where(eq(auditEvents.subject, two.id))
      .orderBy(auditEvents.seq)
      .offset(1);
    expect(last).toMatchObject({
      action: "workspace.delete-files",
      actorId: world.lead.id,
      detail: { name: two.name },
    });
  });
});
