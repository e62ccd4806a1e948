import { eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { Context } from "#server/context.ts";
import { leaseRequests, leases } from "#server/db/schema/index.ts";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { awaitNotice } from "./await-notice.ts";
import type { Watcher } from "./watch.ts";

let test: TestDatabase;
let world: World;
let ctx: Context;
let leaseId: string;
/** Wakes who waits. */
let change: () => void;
const watcher: Watcher = () => ({
  changed: (ms) =>
    new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), Math.min(ms, 2 ** 30));
      change = () => {
        clearTimeout(timer);
        resolve(true);
      };
    }),
  close: () => undefined,
});

beforeAll(async () => {
  test = await createTestDatabase();
});
beforeEach(async () => {
  await resetTestDatabase(test);
  world = await makeWorld(test.db);
  const { id: workspaceId } = await makeWorkspace(world, { owner: world.member });
  const whose = { workspaceId, teamId: world.team, userId: world.member.id };
  ctx = { ...world.system, principal: { kind: "workspace", ...whose } };
  const owner = { kind: "kernel" as const, pid: 1, startTime: 1 };
  const now = new Date();
  const ask = async (teamId: string) => {
    const id = newId("req");
    const row = { ...whose, id, teamId, idempotencyKey: id, gpuType: "soft", milli: 500, memoryBytes: 0, owner };
    await world.db.insert(leaseRequests).values({ ...row, state: "queued", lastPolledAt: now, waitUntil: now });
    return id;
  };
  leaseId = newId("lea");
  await world.db.insert(leases).values({
    ...{ ...whose, id: leaseId, requestId: await ask(world.team), gpuId: world.gpuIds[0], serverId: world.serverId },
    ...{ gpuType: "soft", milli: 500, memoryBytes: 1, usedMemoryBytes: 77, owner, state: "active", epoch: 1 },
    ...{ grantedAt: now, claimedAt: now, ownerSeenAt: now, expiresAt: now },
  });
  claim = await ask(world.otherTeam);
});
let claim: string;
afterAll(() => test.drop());

const set = (values: Partial<typeof leases.$inferInsert>) =>
  world.db.update(leases).set(values).where(eq(leases.id, leaseId));
const wait = (known: string, waitSeconds = 20) => awaitNotice(ctx, { leaseId, known, waitSeconds }, watcher);

it("answers at once what is not known yet, then only when there is something else to tell", async () => {
  const first = await wait("");
  expect(first).toMatchObject({ held: true, notice: null, idleEndsAt: null, usedMemoryBytes: 77 });
  let answered = false;
  const next = wait(first.mark).finally(() => {
    answered = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(answered).toBe(false);
  const releaseAt = new Date(Date.now() + 120_000);
  await set({ noticeFor: claim, noticeAt: new Date(), releaseAt });
  change();
  expect(await next).toMatchObject({ forTeam: "nlp", notice: { releaseAt: releaseAt.toISOString() } });
  await set({ noticeFor: null, noticeAt: null, releaseAt: null });
  expect(await wait((await next).mark)).toMatchObject({ notice: null, forTeam: null });
});

it("wakes by itself when the idle warning is due", async () => {
  const { mark } = await wait("");
  // The warning is due sixteen minutes after the last work.
  await set({ usageAt: new Date(Date.now() - 16 * 60_000 + 300) });
  const began = Date.now();
  expect((await wait(mark)).idleEndsAt).not.toBeNull();
  expect(Date.now() - began).toBeGreaterThan(200);
});

it("says when the lease is over, and nothing to another workspace", async () => {
  const { mark } = await wait("");
  await set({ state: "ending" });
  expect(await wait(mark)).toMatchObject({ held: false, notice: null });
  const { id: workspaceId } = await makeWorkspace(world, { owner: world.colleague });
  const principal = { kind: "workspace" as const, workspaceId, teamId: world.team, userId: world.colleague.id };
  const asked = awaitNotice({ ...ctx, principal }, { leaseId }, watcher);
  await expect(asked).rejects.toMatchObject({ code: "not-found" });
});
