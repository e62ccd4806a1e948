/** Teams that are put away: refused while anything is in use, what ends and what stays, nothing new, and the way back. */
import { randomUUID } from "node:crypto";
import { and, eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { loadUser } from "#server/auth/load-user.ts";
import {
  deviceIntervals,
  leaseIntervals,
  leaseRequests,
  leases,
  memberships,
  quotas,
  stopSwitches,
  teams,
  workspaces,
} from "#server/db/schema/index.ts";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { toSluiceError } from "#server/errors.ts";
import { list as listAudit } from "#server/services/audit/list.ts";
import { closeMonth } from "#server/services/cost/close-month.ts";
import { report } from "#server/services/cost/report.ts";
import { setPrice } from "#server/services/cost/set-price.ts";
import { register } from "#server/services/dataset/register.ts";
import { add as addGroup } from "#server/services/identity-group/add.ts";
import { confirmEnds } from "#server/services/lease/confirm-end.ts";
import { request } from "#server/services/lease/request.ts";
import { ask } from "#server/services/quota-request/ask.ts";
import { create as reserve } from "#server/services/reservation/create.ts";
import { setStop } from "#server/services/stop/set.ts";
import { makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { invite } from "#server/services/user/invite.ts";
import { readInvite } from "#server/services/user/read-invite.ts";
import { read as readUtilisation } from "#server/services/utilisation/read.ts";
import { create as createWorkspace } from "#server/services/workspace/create.ts";
import { remove as removeWorkspace } from "#server/services/workspace/remove.ts";
import { addMember } from "./add-member.ts";
import { archive } from "./archive.ts";
import { create } from "./create.ts";
import { get } from "./get.ts";
import { list } from "./list.ts";
import { names, namesOfAllTimes } from "./names.ts";
import { restore } from "./restore.ts";
import { setPolicy } from "./set-policy.ts";
import { setQuota } from "./set-quota.ts";
import { setQuotaWindows } from "./set-quota-windows.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
});
beforeEach(async () => {
  await resetTestDatabase(test);
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

const HOUR = 3_600_000;
const ARCHIVED = "This team is archived. An admin brings it back on the page of teams.";
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

/** A running workspace whose notebook asks for a GPU. */
async function attach(owner: Person, teamId: string, { amount = "1", name = `of-${owner.name.toLowerCase()}` } = {}) {
  const { id } = await makeWorkspace(world, { owner, teamId, name });
  const principal = { kind: "workspace" as const, workspaceId: id, teamId, userId: owner.id };
  const kernel = { kind: "kernel" as const, pid: 1, startTime: 1, label: "train.ipynb" };
  const input = { requestId: randomUUID(), amount, owner: kernel, waitSeconds: 600 };
  const { state } = await request({ ...world.system, principal }, input);
  return { id, state };
}

/** As the launcher leaves a workspace that was removed, and gpud its leases. */
async function takenDown(workspaceId: string): Promise<void> {
  await test.db.update(workspaces).set({ observed: "removed" }).where(eq(workspaces.id, workspaceId));
}
async function letGo(workspaceId: string): Promise<void> {
  const held = await test.db.select().from(leases).where(eq(leases.workspaceId, workspaceId));
  const ends = new Map(held.map(({ id }) => [id, { parkedBytes: 0, gpuTimeUs: 0 }]));
  await confirmEnds(world.system, { serverId: world.serverId, ends });
}
async function clear(workspaceId: string): Promise<void> {
  await removeWorkspace(world.admin.ctx, { id: workspaceId });
  await takenDown(workspaceId);
  await letGo(workspaceId);
}

describe("archiving a team", () => {
  it("a team archived while its leases run: it is refused, and says what there still is", async () => {
    const { id: holds } = await attach(world.member, world.team);
    const { id: waits, state } = await attach(world.colleague, world.team);
    expect(state).toBe("queued");
    await expect(archive(world.admin.ctx, { id: world.team })).rejects.toMatchObject({
      code: "conflict",
      message:
        "Team vision still has 2 workspaces: of-kim of Kim, of-max of Max; 1 lease; 1 request in the queue. " +
        "Have its people remove their workspaces, or remove them on the page Workspaces: leases and requests end with them.",
      detail: { workspaces: [waits, holds], leases: 1, requests: 1 },
    });
    // Not before the launcher has taken it down, and gpud has let go of the lease.
    await removeWorkspace(world.admin.ctx, { id: waits });
    await takenDown(waits);
    await removeWorkspace(world.admin.ctx, { id: holds });
    await expect(archive(world.admin.ctx, { id: world.team })).rejects.toMatchObject({
      detail: { workspaces: [holds], leases: 1, requests: 0 },
    });
    await takenDown(holds);
    await expect(archive(world.admin.ctx, { id: world.team })).rejects.toMatchObject({
      detail: { workspaces: [], leases: 1 },
    });
    expect((await get(world.admin.ctx, { id: world.team })).quotas).toHaveLength(1);
    // The row itself cannot go, whoever is connected, while anything refers to it.
    expect(await code(test.db.delete(teams).where(eq(teams.id, world.team)).execute())).toBe("internal");
    await letGo(holds);
    expect(await code(archive(world.admin.ctx, { id: world.team }))).toBe("done");
  });

  it("is an admin's alone, and so is bringing it back", async () => {
    for (const { ctx } of [world.lead, world.member, world.outsider]) {
      expect(await code(archive(ctx, { id: world.team }))).toBe("forbidden");
      expect(await code(restore(ctx, { id: world.team }))).toBe("forbidden");
    }
  });

  it("ends what it was promised and who is in it, and gives what is free to those who wait", async () => {
    const quota = { teamId: world.team, gpuType: "soft", guaranteedMilli: 0, limitMilli: 1500 };
    await setQuota(world.admin.ctx, quota);
    const startsAt = new Date(Date.now() + 60_000).toISOString();
    const endsAt = new Date(Date.now() + HOUR).toISOString();
    const more = { teamId: world.team, gpuType: "soft", guaranteedMilli: 0, limitMilli: 500 };
    await ask(world.member.ctx, { ...more, endsAt, reason: "a paper" });
    const { link } = await invite(world.lead.ctx, { email: "new@example.org", teamId: world.team });
    await setStop(world.admin.ctx, { scope: "team", subjectId: world.team, reason: "moving" });
    // What is reserved for the team keeps a device from the other one.
    const reserved = { teamId: world.team, gpuType: "soft", amount: "1", unit: "1", startsAt, endsAt };
    await reserve(world.admin.ctx, reserved);
    expect((await attach(world.outsider, world.otherTeam)).state).toBe("granted");
    const second = await attach(world.outsider, world.otherTeam, { name: "second" });
    expect(second.state).toBe("queued");

    const archived = await archive(world.admin.ctx, { id: world.team });
    expect(archived).toMatchObject({ memberCount: 0, quotas: [], members: [] });
    expect(archived.archivedAt).not.toBeNull();
    expect(await test.db.$count(quotas, eq(quotas.teamId, world.team))).toBe(0);
    expect(await test.db.$count(memberships, eq(memberships.teamId, world.team))).toBe(0);
    expect((await loadUser(test.db, world.member.id))?.teams).toEqual({});
    expect(await code(readInvite(world.system, { code: link.split("/").at(-1) ?? "" }))).toBe("not-found");
    expect((await test.db.select().from(stopSwitches))[0]?.liftedAt).not.toBeNull();
    const ofSecond = and(eq(leaseRequests.workspaceId, second.id), eq(leaseRequests.state, "granted"));
    expect(await test.db.$count(leaseRequests, ofSecond)).toBe(1);
    // Who archives it again changes nothing.
    expect((await archive(world.admin.ctx, { id: world.team })).archivedAt).toBe(archived.archivedAt);
    const entries = (await listAudit(world.admin.ctx, { subject: world.team, limit: 5 })).events;
    expect(entries.filter(({ action }) => action === "team.archive")).toMatchObject([
      { detail: { name: "vision", before: { quotas: [{ gpuType: "soft", limitMilli: 1500 }] } } },
    ]);
  });

  it("keeps ledger, audit and the months that are closed, under a name that no other team gets", async () => {
    const month = new Date(Date.now() - 40 * 24 * HOUR).toISOString().slice(0, 7);
    const { id: held } = await attach(world.member, world.team, { amount: "0.5" });
    await clear(held);
    const [startedAt, endedAt] = [new Date(`${month}-10T10:00:00Z`), new Date(`${month}-10T12:00:00Z`)];
    await test.db.update(leaseIntervals).set({ startedAt, endedAt });
    const open = { state: "open" as const, startedAt: new Date(`${month}-01T00:00:00Z`) };
    await test.db.insert(deviceIntervals).values(world.gpuIds.map((gpuId) => ({ ...open, gpuId })));
    await setPrice(world.admin.ctx, { type: "soft", basis: "hour", amount: 1 });
    const closed = await closeMonth(world.admin.ctx, { month });
    const asked = { from: `${month}-01T00:00:00Z`, to: `${month}-28T00:00:00Z` };
    const before = await readUtilisation(world.admin.ctx, asked);
    expect(before.rows).toMatchObject([{ name: "vision" }]);

    await archive(world.admin.ctx, { id: world.team });
    expect(await report(world.admin.ctx, { month })).toEqual(closed);
    const after = await readUtilisation(world.admin.ctx, asked);
    expect(after.rows.map(({ name, used, heldIdle }) => [name, used, heldIdle])).toEqual(
      before.rows.map(({ name, used, heldIdle }) => [name, used, heldIdle]),
    );
    const { events } = await listAudit(world.admin.ctx, { teamId: world.team, limit: 50 });
    expect(events.map(({ action }) => action)).toContain("lease.grant");
    await expect(create(world.admin.ctx, { name: "vision" })).rejects.toMatchObject({
      code: "conflict",
      message:
        'name: There was a team "vision": its accounts stay under that name. Bring it back, or choose another name.',
    });
  });

  it("takes nothing new, whoever adds it", async () => {
    await archive(world.admin.ctx, { id: world.team });
    const { ctx } = world.admin;
    const teamId = world.team;
    const quota = { teamId, gpuType: "soft", guaranteedMilli: 0, limitMilli: 500 };
    const when = {
      startsAt: new Date(Date.now() + HOUR).toISOString(),
      endsAt: new Date(Date.now() + 2 * HOUR).toISOString(),
    };
    const source = { kind: "volume" as const, claim: "data" };
    const adding: Record<string, () => Promise<unknown>> = {
      person: () => addMember(ctx, { teamId, email: world.outsider.email }),
      invitation: () => invite(ctx, { teamId, email: "new@example.org" }),
      quota: () => setQuota(ctx, quota),
      policy: () => setPolicy(ctx, { teamId, maxLeaseSeconds: 3600, idleSeconds: null, coTenancy: "any" }),
      group: () => addGroup(ctx, { name: "data-science", teamId, role: "member" }),
      dataset: () => register(ctx, { name: "data", teamId, source }),
    };
    for (const [what, add] of Object.entries(adding)) {
      expect([what, await refusal(add())]).toEqual([what, ARCHIVED]);
    }
    // These are of a quota, which it has none of.
    const windows = [{ fromMinute: 0, toMinute: 60, guaranteedMilli: 0, limitMilli: 500 }];
    expect(await code(setQuotaWindows(ctx, { teamId, gpuType: "soft", windows }))).toBe("not-found");
    expect(await code(reserve(ctx, { teamId, gpuType: "soft", amount: "0.5", unit: "0.5", ...when }))).not.toBe("done");
    // Who was signed in as a member when it happened.
    const launching = { name: "late", image: "cuda-python", teamId };
    expect(await refusal(createWorkspace(world.member.ctx, launching))).toBe(ARCHIVED);
    expect(await names(ctx)).toEqual([{ id: world.otherTeam, name: "nlp" }]);
    expect(await namesOfAllTimes(ctx)).toEqual([
      { id: world.otherTeam, name: "nlp" },
      { id: teamId, name: "vision (archived)" },
    ]);
    expect(await namesOfAllTimes(world.outsider.ctx)).toEqual([{ id: world.otherTeam, name: "nlp" }]);
    expect(await list(ctx)).toMatchObject({ teams: [{ name: "nlp" }], archived: [{ id: teamId, name: "vision" }] });
    expect((await list(world.outsider.ctx)).archived).toEqual([]);
  });

  it("waits for a workspace that is being launched, and a launch waits for it: one of both is refused", async () => {
    const launching = { image: "cuda-python", teamId: world.team };
    for (let round = 0; round < 10; round++) {
      const [archived, launched] = await Promise.all([
        code(archive(world.admin.ctx, { id: world.team })),
        code(createWorkspace(world.member.ctx, { ...launching, name: `at-once-${round}` })),
      ]);
      expect([archived, launched].sort()).toEqual(["conflict", "done"]);
      if (launched === "done") {
        const [row] = await test.db
          .select()
          .from(workspaces)
          .where(eq(workspaces.name, `at-once-${round}`));
        await clear(row?.id ?? "");
      }
      if (archived === "done") await restore(world.admin.ctx, { id: world.team });
    }
  });

  it("is undone by bringing it back: with its policy and its past, without people and quotas", async () => {
    await setPolicy(world.admin.ctx, {
      ...{ teamId: world.team, maxLeaseSeconds: 3600, idleSeconds: null, coTenancy: "any" },
    });
    await archive(world.admin.ctx, { id: world.team });
    const back = await restore(world.admin.ctx, { id: world.team });
    expect(back).toMatchObject({ name: "vision", archivedAt: null, members: [], quotas: [] });
    expect(await code(addMember(world.admin.ctx, { teamId: world.team, email: world.member.email }))).toBe("done");
    expect(
      await code(
        setQuota(world.admin.ctx, { teamId: world.team, gpuType: "soft", guaranteedMilli: 500, limitMilli: 500 }),
      ),
    ).toBe("done");
    const { events } = await listAudit(world.admin.ctx, { subject: world.team, limit: 3 });
    expect(events.map(({ action }) => action)).toEqual(["team.set-quota", "team.restore", "team.archive"]);
  });
});
