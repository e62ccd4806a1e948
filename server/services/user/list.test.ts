/** The list of people: everybody, or those whom words find, a page at a time. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { list } from "./list.ts";

let test: TestDatabase;
let world: World;

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

it("has everybody by name, each with the teams", async () => {
  const { users, total, next } = await list(world.admin.ctx);
  expect(users.map(({ id }) => id)).toEqual(expect.arrayContaining([world.member.id, world.lead.id, world.admin.id]));
  expect(users.map(({ name }) => name)).toEqual(users.map(({ name }) => name).sort());
  expect([total, next]).toEqual([users.length, null]);
  const lead = users.find(({ id }) => id === world.lead.id);
  expect(lead?.teams).toMatchObject([{ id: world.team, role: "lead" }]);
});

it("comes a page at a time, nobody twice and nobody left out", async () => {
  const { users: all } = await list(world.admin.ctx);
  const paged: typeof all = [];
  for (let after: string | undefined, more = true; more; ) {
    const page = await list(world.admin.ctx, { limit: 2, after });
    expect(page.total).toBe(all.length);
    expect(page.users.length).toBeLessThanOrEqual(2);
    paged.push(...page.users);
    more = page.next !== null;
    after = page.next ?? undefined;
  }
  expect(paged).toEqual(all);
});

it("finds people by their name, e-mail and team, and tells how many there are", async () => {
  const { users: all } = await list(world.admin.ctx);
  const team = all.find(({ id }) => id === world.member.id)?.teams[0]?.name ?? "";
  const found = await list(world.admin.ctx, { search: team.toUpperCase(), limit: 1 });
  const ofTeam = all.filter((user) => user.teams.some(({ name }) => name === team));
  expect(found).toMatchObject({ users: ofTeam.slice(0, 1), total: ofTeam.length });
  expect((await list(world.admin.ctx, { search: `${world.member.email} ${team}` })).users.map(({ id }) => id)).toEqual([
    world.member.id,
  ]);
  expect((await list(world.admin.ctx, { search: "ADA admin" })).users.map(({ id }) => id)).toEqual([world.admin.id]);
  // Letters that mean something to the database are letters.
  for (const search of ["%", "_", "\\"]) expect((await list(world.admin.ctx, { search })).total).toBe(0);
  expect((await list(world.admin.ctx, { search: "nobody is called so" })).users).toEqual([]);
  await expect(list(world.lead.ctx)).rejects.toMatchObject({ code: "forbidden" });
});
