import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { leaseRequests, leases, workspaceCollaborators } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { live, notify, subscribe } from "#server/live.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { watchConcerned } from "./watch-concerned.ts";

let test: TestDatabase;
let world: World;
let workspaceId: string;
const [leaseId, requestId] = [newId("lea"), newId("req")];
const now = new Date();
const owner = { kind: "kernel", pid: 1, startTime: 1, label: "train.ipynb" } as const;
let told: (string | null)[];
let stop: () => void;

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
  workspaceId = (await makeWorkspace(world, { owner: world.member })).id;
  const asked = {
    ...{ workspaceId, teamId: world.team, userId: world.member.id, gpuType: "soft", milli: 500 },
    ...{ memoryBytes: 2 ** 30, owner },
  };
  await test.db.insert(leaseRequests).values({
    ...asked,
    id: requestId,
    state: "granted",
    lastPolledAt: now,
    idempotencyKey: "a",
    waitUntil: new Date(Date.now() + 60_000),
  });
  await test.db.insert(leases).values({
    ...{ ...asked, id: leaseId, requestId, gpuId: world.gpuIds[0], serverId: world.serverId, state: "active" as const },
    ...{ epoch: 1, grantedAt: now, ownerSeenAt: now, expiresAt: new Date(Date.now() + 60_000) },
  });
  await live().ready();
});
afterAll(async () => {
  stop();
  await live().close();
  await test.drop();
});
beforeEach(() => {
  stop?.();
  told = [];
  stop = watchConcerned({ db: test.db, subscribe }, (userId) => told.push(userId));
});

it("tells who holds a GPU, who asks for one, and whose workspace changes, and nobody else", async () => {
  for (const [topic, id] of [
    ["lease", leaseId],
    ["lease", requestId],
    ["workspace", workspaceId],
  ] as const) {
    told = [];
    await notify(test.db, topic, id);
    await expect.poll(() => told).toEqual([world.member.id]);
  }
});

it("tells those with whom the workspace is shared, too", async () => {
  await test.db.insert(workspaceCollaborators).values({ workspaceId, userId: world.colleague.id, role: "viewer" });
  await notify(test.db, "lease", leaseId);
  await expect.poll(() => told.toSorted()).toEqual([world.member.id, world.colleague.id].toSorted());
});

it("tells a person of what is theirs alone, like the end of a share", async () => {
  await notify(test.db, "workspace", world.outsider.id);
  await expect.poll(() => told).toEqual([world.outsider.id]);
});

it("tells everybody of what is nobody's, like a stop of all leases", async () => {
  await notify(test.db, "lease", newId("stp"));
  await expect.poll(() => told).toEqual([null]);
});

it("looks up together what comes together, and tells each person once", async () => {
  await test.db.transaction(async (tx) => {
    for (const id of [leaseId, requestId]) await notify(tx, "lease", id);
    for (let n = 0; n < 50; n++) await notify(tx, "lease", newId("stp"));
  });
  await notify(test.db, "workspace", workspaceId);
  await expect.poll(() => told).toContain(null);
  // The first alone, as nothing was waiting, then what has come meanwhile.
  expect(told.filter((one) => one === world.member.id).length).toBeLessThanOrEqual(3);
  expect(told.filter((one) => one === null).length).toBeLessThanOrEqual(2);
});

it("tells nobody who has left", async () => {
  stop();
  await notify(test.db, "lease", leaseId);
  const heard = new Promise((resolve) => subscribe(["pool"], resolve));
  await notify(test.db, "pool", "gsv-x");
  await heard;
  expect(told).toEqual([]);
});
