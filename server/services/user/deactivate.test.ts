/** Accounts that are closed and opened again, and admins that are made. */
import { and, eq, isNull } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadUser } from "#server/auth/load-user.ts";
import { principalFromCredential } from "#server/auth/principal-from-credential.ts";
import { auditEvents, leaseRequests, leases, sessions, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { create as createToken } from "#server/services/access-token/create.ts";
import { makePerson, makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { deactivate, reactivate } from "./deactivate.ts";
import { list } from "./list.ts";
import { setAdmin } from "./set-admin.ts";

let test: TestDatabase;
let world: World;

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

it("ends every way in, stops what runs and keeps it", async () => {
  const { id: workspaceId, credential } = await makeWorkspace(world, { owner: world.member });
  await createToken(world.member.ctx, { name: "script" });
  const { users } = await list(world.admin.ctx);
  expect(users.find(({ id }) => id === world.member.id)).toMatchObject({ running: 1, disabled: false });

  const view = await deactivate(world.admin.ctx, { id: world.member.id });

  expect(view).toMatchObject({ running: 0, disabled: true, teams: [{ id: world.team }] });
  const [workspace] = await test.db.select().from(workspaces).where(eq(workspaces.id, workspaceId));
  expect(workspace).toMatchObject({ desired: "stopped", ownerId: world.member.id });
  const open = and(eq(sessions.userId, world.member.id), isNull(sessions.revokedAt));
  expect(await test.db.$count(sessions, open)).toBe(0);
  expect(await loadUser(test.db, world.member.id)).toBeUndefined();
  expect(await principalFromCredential(test.db, `Bearer ${credential}`)).toMatchObject({ kind: "anonymous" });
  expect(await test.db.$count(leases)).toBe(0);
  expect(await test.db.$count(leaseRequests, eq(leaseRequests.state, "queued"))).toBe(0);

  // Once more says the same and writes nothing.
  const events = await test.db.$count(auditEvents);
  expect(await deactivate(world.admin.ctx, { id: world.member.id })).toEqual(view);
  expect(await test.db.$count(auditEvents)).toBe(events);

  expect(await reactivate(world.admin.ctx, { id: world.member.id })).toMatchObject({ disabled: false, running: 0 });
  expect(await loadUser(test.db, world.member.id)).toBeDefined();
  expect(await test.db.$count(sessions, open)).toBe(0);
});

it("leaves an admin, however two go at each other, and nobody changes the own account", async () => {
  const own = { id: world.admin.id };
  await expect(deactivate(world.admin.ctx, own)).rejects.toMatchObject({ code: "conflict" });
  await expect(setAdmin(world.admin.ctx, { ...own, isAdmin: false })).rejects.toMatchObject({ code: "conflict" });
  const second = await makePerson(test.db, { name: "Sol" });
  expect(await setAdmin(world.admin.ctx, { id: second.id, isAdmin: true })).toMatchObject({ isAdmin: true });
  const [event] = await test.db.select().from(auditEvents).where(eq(auditEvents.action, "user.set-admin"));
  expect(event).toMatchObject({ subject: second.id, detail: { before: { isAdmin: false }, after: { isAdmin: true } } });
  const principal = await loadUser(test.db, second.id);
  if (principal === undefined) throw new Error("Sol is there");
  const theirs = { ...second.ctx, principal: { ...principal, sessionId: second.sessionId } };
  const outcomes = await Promise.allSettled([
    deactivate(world.admin.ctx, { id: second.id }),
    setAdmin(theirs, { id: world.admin.id, isAdmin: false }),
  ]);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  await expect(deactivate(world.lead.ctx, { id: world.member.id })).rejects.toMatchObject({ code: "forbidden" });
  await expect(setAdmin(world.lead.ctx, { id: world.lead.id, isAdmin: true })).rejects.toMatchObject({
    code: "forbidden",
  });
});
