/** Accounts that are closed and opened again, and admins that are made. */
import { and, eq, isNull } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadUser } from "#server/auth/load-user.ts";
import { principalFromCredential } from "#server/auth/principal-from-credential.ts";
import { accessTokens, auditEvents, leaseRequests, leases, sessions, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { create as createToken } from "#server/services/access-token/create.ts";
import { makePerson, makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { start } from "#server/services/workspace/start.ts";
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
  const requestId = await makeRequest(workspaceId, "granted");
  await makeLease(workspaceId, requestId);
  const waiting = await makeRequest(workspaceId, "queued");
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
  const [lease] = await test.db.select().from(leases).where(eq(leases.requestId, requestId));
  expect(lease).toMatchObject({ state: "ending", endReason: "workspace stopped" });
  const [request] = await test.db.select().from(leaseRequests).where(eq(leaseRequests.id, waiting));
  expect(request).toMatchObject({ state: "cancelled" });
  const tokens = and(eq(accessTokens.userId, world.member.id), isNull(accessTokens.revokedAt));
  expect(await test.db.$count(accessTokens, tokens)).toBe(0);
  // An admin of the team's workspaces, or somebody who was invited to it, starts nothing for a closed account.
  await expect(start({ ...world.system, principal: world.member.ctx.principal }, { id: workspaceId })).rejects.toThrow(
    "This account is deactivated",
  );

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

const ofMember = (workspaceId: string) => ({
  ...{ workspaceId, teamId: world.team, userId: world.member.id, gpuType: "soft", milli: 500, memoryBytes: 2 ** 32 },
  owner: { kind: "process" as const, pid: 1, startTime: 1 },
});

async function makeRequest(workspaceId: string, state: "granted" | "queued"): Promise<string> {
  const [id, now] = [newId("req"), new Date()];
  await test.db.insert(leaseRequests).values({
    ...ofMember(workspaceId),
    ...{ id, state, idempotencyKey: id, lastPolledAt: now, waitUntil: new Date(now.getTime() + 600_000) },
  });
  return id;
}

async function makeLease(workspaceId: string, requestId: string): Promise<void> {
  const now = new Date();
  await test.db.insert(leases).values({
    ...ofMember(workspaceId),
    ...{ id: newId("lea"), requestId, gpuId: world.gpuIds[0], serverId: world.serverId, state: "active" as const },
    ...{ epoch: 1, grantedAt: now, ownerSeenAt: now, expiresAt: new Date(now.getTime() + 3_600_000) },
  });
}
