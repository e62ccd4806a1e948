import { randomUUID } from "node:crypto";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Context } from "#server/context.ts";
import { leaseBoard } from "#server/contracts/lease-board.ts";
import { leaseRequests, leases } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { answerFor } from "#server/services/lease/answer.ts";
import { atAGlance } from "#server/services/lease/at-a-glance.ts";
import { board } from "#server/services/lease/board.ts";
import { explanation } from "#server/services/lease/explanation.ts";
import { leaveQueue } from "#server/services/lease/leave-queue.ts";
import { request } from "#server/services/lease/request.ts";
import { teamLeases } from "#server/services/lease/team-leases.ts";
import { teamQueue } from "#server/services/lease/team-queue.ts";
import { makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";

let test: TestDatabase;
let world: World;

/** Asks for a GPU from a new workspace of this person. */
async function attach(owner: Person, amount: string, pid: number): Promise<void> {
  const { id } = await makeWorkspace(world, { owner });
  const principal = { kind: "workspace" as const, workspaceId: id, teamId: world.team, userId: owner.id };
  const ctx: Context = { ...world.system, principal };
  const owned = { kind: "kernel" as const, pid, startTime: 1, label: `${owner.name}.ipynb` };
  await request(ctx, { requestId: randomUUID(), amount, owner: owned, guaranteed: false, waitSeconds: 600 });
}

beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
  await attach(world.member, "0.75", 11);
  await attach(world.colleague, "0.5", 12);
});
afterAll(async () => test.drop());

describe("the board of GPUs that a person sees", () => {
  it("shows the holder their lease, and the team's use with what is borrowed", async () => {
    const seen = leaseBoard.parse(await board(world.member.ctx));
    expect(seen.leases.map(({ milli, owner }) => [milli, owner.label])).toEqual([[750, "Max.ipynb"]]);
    expect(seen.quotas).toMatchObject([
      {
        teamId: world.team,
        gpuType: "soft",
        guaranteedMilli: 500,
        limitMilli: 1000,
        usedMilli: 750,
        borrowedMilli: 250,
      },
    ]);
    expect(seen.quotas[0]).toMatchObject({ capacityMilli: 2000, freeMilli: 1250, queued: 1 });
  });

  it("gives whoever waits their place and the rule that stops them", async () => {
    const { leases, requests } = await board(world.colleague.ctx);
    expect(leases).toEqual([]);
    expect(requests).toMatchObject([{ userId: world.colleague.id, position: 1, of: 1, milli: 500 }]);
    expect(requests[0]?.reason.rule).toBe("team-limit");
    expect(requests[0]?.likelySeconds).toBeGreaterThan(0);
  });

  it("tells another team nothing of the queue, but what is free for them", async () => {
    const { leases, requests, quotas } = await board(world.outsider.ctx);
    expect([leases, requests]).toEqual([[], []]);
    expect(quotas).toMatchObject([{ teamId: world.otherTeam, usedMilli: 0, atOnceMilli: 1000 }]);
  });

  it("shows an admin every request", async () => {
    expect((await board(world.admin.ctx)).requests).toHaveLength(1);
    expect((await board(world.admin.ctx, "teams")).requests).toEqual([]);
    expect((await board(world.colleague.ctx, "teams")).requests).toHaveLength(1);
  });
});

describe("the top bar at a glance", () => {
  it("says what a person holds, and nothing of what waits", async () => {
    expect(await atAGlance(world.member.ctx)).toMatchObject({
      leases: [{ gpuType: "soft", milli: 750, idleEndsAt: null }],
      waiting: null,
    });
  });

  it("has the same idle limit as the board, counted from the last GPU work", async () => {
    const usageAt = new Date("2026-11-29T08:00:00.000Z");
    const ofMember = eq(leases.userId, world.member.id);
    await test.db.update(leases).set({ state: "active", usageAt }).where(ofMember);
    const idleEndsAt = "2026-11-29T08:20:00.000Z";
    expect((await atAGlance(world.member.ctx)).leases).toMatchObject([{ idleEndsAt }]);
    expect((await board(world.member.ctx)).leases).toMatchObject([{ idleEndsAt }]);
    await test.db.update(leases).set({ state: "granted", usageAt: null }).where(ofMember);
  });

  it("gives whoever only waits the place", async () => {
    expect(await atAGlance(world.colleague.ctx)).toEqual({
      leases: [],
      waiting: { gpuType: "soft", milli: 500, position: 1 },
    });
  });

  it("says nothing of others to an admin", async () => {
    expect(await atAGlance(world.admin.ctx)).toEqual({ leases: [], waiting: null });
  });
});

describe("what waits of a team", () => {
  it("is seen by every member and by admins", async () => {
    for (const { ctx } of [world.member, world.admin]) {
      expect(await teamQueue(ctx, { id: world.team })).toMatchObject([{ userId: world.colleague.id, position: 1 }]);
      expect(await teamQueue(ctx, { id: world.team })).toEqual((await board(ctx)).requests);
    }
    expect(await teamQueue(world.admin.ctx, { id: world.otherTeam })).toEqual([]);
  });

  it("is refused to people of other teams", async () => {
    await expect(teamQueue(world.outsider.ctx, { id: world.team })).rejects.toMatchObject({ code: "forbidden" });
  });
});

describe("who in a team holds what", () => {
  it("is seen by every member, since they wait for each other", async () => {
    const { leases } = await teamLeases(world.colleague.ctx, { id: world.team });
    expect(leases.map(({ userName, milli }) => [userName, milli])).toEqual([["Max", 750]]);
  });

  it("is refused to people of other teams", async () => {
    await expect(teamLeases(world.outsider.ctx, { id: world.team })).rejects.toMatchObject({ code: "forbidden" });
  });
});

describe("leaving the queue from a page", () => {
  const waiting = async () => (await board(world.colleague.ctx)).requests.map(({ requestId }) => requestId);

  it("is for whoever asked, the team's lead and admins, and the notebook learns who did it", async () => {
    const [id = ""] = await waiting();
    const why = await explanation(world.colleague.ctx, { id });
    expect(why).toMatchObject({ state: "queued", position: 1, reason: { rule: "team-limit", fitsNowMilli: 250 } });
    await expect(leaveQueue(world.outsider.ctx, { id })).rejects.toMatchObject({ code: "forbidden" });
    await expect(leaveQueue(world.member.ctx, { id })).rejects.toMatchObject({ code: "forbidden" });
    expect(await leaveQueue(world.lead.ctx, { id })).toEqual({ requestId: id, state: "cancelled" });
    expect(await waiting()).toEqual([]);
    const [row] = await test.db.select().from(leaseRequests).where(eq(leaseRequests.id, id));
    expect(row && (await answerFor(test.db, row, new Date()))).toMatchObject({
      state: "cancelled",
      reason: { rule: "taken-out", message: `${world.lead.name} took it out of the queue` },
    });
    await expect(leaveQueue(world.lead.ctx, { id })).rejects.toMatchObject({ code: "conflict" });
  });
});
