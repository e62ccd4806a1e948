import { eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { loadUser } from "#server/auth/load-user.ts";
import { anonymous } from "#server/auth/principal.ts";
import {
  auditEvents,
  gpuServers,
  gpus,
  leaseIntervals,
  leaseRequests,
  leases,
  memberships,
  quotas,
  teamPolicies,
  workspaces,
} from "#server/db/schema/index.ts";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { list as listAudit } from "#server/services/audit/list.ts";
import { addMember } from "#server/services/team/add-member.ts";
import { budget } from "#server/services/team/budget.ts";
import { create } from "#server/services/team/create.ts";
import { get } from "#server/services/team/get.ts";
import { list } from "#server/services/team/list.ts";
import { listPolicies } from "#server/services/team/list-policies.ts";
import { previewQuota } from "#server/services/team/preview-quota.ts";
import { readPolicy } from "#server/services/team/read-policy.ts";
import { removeMember } from "#server/services/team/remove-member.ts";
import { setPolicy } from "#server/services/team/set-policy.ts";
import { setQuota } from "#server/services/team/set-quota.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { acceptInvite } from "#server/services/user/accept-invite.ts";
import { enterSample } from "#server/services/user/enter-sample.ts";
import { invite } from "#server/services/user/invite.ts";
import { listInvitations } from "#server/services/user/list-invitations.ts";
import { openSample } from "#server/services/user/open-sample.ts";
import { readInvite } from "#server/services/user/read-invite.ts";
import { revokeInvitation } from "#server/services/user/revoke-invitation.ts";
import { get as getWorkspace } from "#server/services/workspace/get.ts";
import { handover } from "#server/services/workspace/handover.ts";
import { start } from "#server/services/workspace/start.ts";

let test: TestDatabase;
let world: World;
const db = () => test.db;
beforeAll(async () => {
  test = await createTestDatabase();
});
beforeEach(async () => {
  await resetTestDatabase(test);
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error: { code?: string }) => error.code,
  );
const quota = (teamId: string, guaranteedMilli: number, limitMilli = 4000) => ({
  teamId,
  gpuType: "soft",
  guaranteedMilli,
  limitMilli,
});

describe("a quota", () => {
  // Two devices; 0.5 is guaranteed to each of the two teams.
  it("guarantees what the pool has and other teams leave", async () => {
    const view = await setQuota(world.admin.ctx, quota(world.team, 1500));
    expect(view.quotas).toMatchObject([{ gpuType: "soft", guaranteedMilli: 1500, limitMilli: 4000, usedMilli: 0 }]);
  });

  it("is refused above that, with what is left", async () => {
    await expect(setQuota(world.admin.ctx, quota(world.team, 1501))).rejects.toMatchObject({
      code: "quota",
      message: "The pool has 2.0 soft and other teams are guaranteed 0.5: at most 1.5 can be guaranteed to this team.",
      detail: { capacityMilli: 2000, leftMilli: 1500 },
    });
    expect((await get(world.admin.ctx, { id: world.team })).quotas[0]?.guaranteedMilli).toBe(500);
  });

  it("never promises more than there is, however many edit at once", async () => {
    const teams = await Promise.all(["a", "b", "c", "d"].map((name) => create(world.admin.ctx, { name })));
    const results = await Promise.all(teams.map((team) => code(setQuota(world.admin.ctx, quota(team.id, 500)))));
    expect(results.sort()).toEqual(["done", "done", "quota", "quota"]);
    const rows = await db().select().from(quotas);
    expect(rows.reduce((sum, row) => sum + row.guaranteedMilli, 0)).toBe(2000);
  });

  it("does not count a server that was removed, and may always be lowered", async () => {
    await db().update(gpuServers).set({ state: "removed" });
    expect(await code(setQuota(world.admin.ctx, quota(world.team, 501)))).toBe("quota");
    expect(await code(setQuota(world.admin.ctx, quota(world.team, 400)))).toBe("done");
  });

  it("counts a device whose server is away for a while", async () => {
    await db().update(gpus).set({ state: "lost" }).where(eq(gpus.id, world.gpuIds[0]));
    expect(await code(setQuota(world.admin.ctx, quota(world.team, 1500)))).toBe("done");
  });

  it("has a limit that is at least the guarantee, and whole thousandths", async () => {
    expect(await code(setQuota(world.admin.ctx, quota(world.team, 1000, 500)))).toBe("invalid");
    for (const wrong of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(await code(setQuota(world.admin.ctx, quota(world.team, wrong)))).toBe("invalid");
    }
  });

  it("is previewed as it would be saved, and nothing of it stays", async () => {
    const { id: workspaceId } = await makeWorkspace(world, { owner: world.member });
    await setQuota(world.admin.ctx, quota(world.team, 0, 0));
    const requestId = await wait(workspaceId);
    const saved = await get(world.admin.ctx, { id: world.team });
    const input = { ...quota(world.team, 250, 1000), budgetMilliHours: 4000 };
    expect(await previewQuota(world.admin.ctx, input)).toMatchObject({
      ...{ refusal: null, capacityMilli: 2000, unallocatedMilli: 1250, usedMilli: 0, overLimitMilli: 0 },
      borrowedMilli: { before: 0, after: 250 },
      granted: [{ who: "Max", teamName: "vision", milli: 500 }],
      ...{ takenBack: [], overCeiling: [], budget: { usedMilliHours: 0, milliHours: 4000 } },
    });
    expect(await get(world.admin.ctx, { id: world.team })).toEqual(saved);
    expect(await db().select({ state: leaseRequests.state }).from(leaseRequests)).toEqual([{ state: "queued" }]);
    const before = await db().$count(auditEvents);
    const refused = await previewQuota(world.admin.ctx, quota(world.team, 1501));
    expect(refused.refusal).toContain("at most 1.5 can be guaranteed");
    expect(refused.granted).toEqual([]);
    expect(await db().$count(auditEvents)).toBe(before);
    // What is granted for good now, an edit below it leaves running and says so.
    await setQuota(world.admin.ctx, input);
    expect((await db().select().from(leaseRequests).where(eq(leaseRequests.id, requestId)))[0]?.state).toBe("granted");
    expect(await previewQuota(world.admin.ctx, { ...quota(world.team, 0, 300), personMilli: 100 })).toMatchObject({
      ...{ usedMilli: 500, overLimitMilli: 200, overCeiling: [{ who: "Max", milli: 500 }] },
      borrowedMilli: { before: 250, after: 500 },
    });
    expect(await code(previewQuota(world.lead.ctx, input))).toBe("forbidden");
  });

  it("has a budget whose days add up to what was used", async () => {
    await setQuota(world.admin.ctx, { ...quota(world.team, 500), budgetMilliHours: 10_000 });
    const { id: workspaceId } = await makeWorkspace(world, { owner: world.member });
    const requestId = await wait(workspaceId);
    await setQuota(world.admin.ctx, { ...quota(world.team, 500), budgetMilliHours: 10_000 });
    const [lease] = await db().select().from(leases).where(eq(leases.requestId, requestId));
    // Six hours of half a GPU over a midnight, and four days of nothing.
    const startedAt = new Date("2026-05-03T21:00:00Z");
    const endedAt = new Date("2026-05-04T03:00:00Z");
    await db()
      .update(leaseIntervals)
      .set({ startedAt, endedAt })
      .where(eq(leaseIntervals.leaseId, lease?.id ?? ""));
    await db().update(leases).set({ state: "ended", endedAt });
    const now = () => new Date("2026-05-05T12:00:00Z");
    const { month, budgets } = await budget({ ...world.member.ctx, now }, { id: world.team });
    expect(month).toBe("2026-05");
    expect(budgets).toEqual([
      {
        ...{ gpuType: "soft", milliHours: 10_000, usedMilliHours: 3000, spentAt: null },
        days: [0, 0, 1500, 1500, 0].map((milliHours, index) => ({ day: `2026-05-0${index + 1}`, milliHours })),
      },
    ]);
    expect(await code(budget(world.outsider.ctx, { id: world.team }))).toBe("forbidden");
  });

  it("that somebody else has changed meanwhile is not written over unseen", async () => {
    const first = { ...quota(world.team, 300), version: 1 };
    const [one, other] = await Promise.all([
      code(setQuota(world.admin.ctx, first)),
      code(setQuota(world.admin.ctx, { ...first, guaranteedMilli: 200 })),
    ]);
    expect([one, other].sort()).toEqual(["conflict", "done"]);
    const of = async () => (await get(world.admin.ctx, { id: world.team })).quotas[0];
    expect(await of()).toMatchObject({ version: 2, guaranteedMilli: one === "done" ? 300 : 200 });
    // With the eyes open it goes; a script that names none replaces what is there; and what is new must not be there yet.
    expect(await code(setQuota(world.admin.ctx, { ...first, version: 2 }))).toBe("done");
    expect(await code(setQuota(world.admin.ctx, quota(world.team, 100)))).toBe("done");
    expect(await of()).toMatchObject({ version: 4, guaranteedMilli: 100 });
    expect(await code(setQuota(world.admin.ctx, { ...first, version: 0 }))).toBe("conflict");
  });

  it("is an admin's to set", async () => {
    expect(await code(setQuota(world.lead.ctx, quota(world.team, 600)))).toBe("forbidden");
  });
});

describe("a policy", () => {
  const policy = { maxLeaseSeconds: 3600, idleSeconds: null, coTenancy: "own-team" as const };

  it("is the installation's until a team has one, and is edited by one at a time", async () => {
    expect(await readPolicy(world.member.ctx, { id: world.team })).toMatchObject({
      ...{ version: 0, maxLeaseSeconds: null, longKernelSeconds: null, coTenancy: "any" },
      installation: { idleSeconds: 1200, longKernelSeconds: 300 },
    });
    const edit = { ...policy, teamId: world.team, longKernelSeconds: 0, version: 0 };
    const both = [setPolicy(world.admin.ctx, edit), setPolicy(world.admin.ctx, { ...edit, coTenancy: "any" })];
    expect((await Promise.all(both.map(code))).sort()).toEqual(["conflict", "done"]);
    expect(await readPolicy(world.lead.ctx, { id: world.team })).toMatchObject({
      ...{ version: 1, maxLeaseSeconds: 3600, longKernelSeconds: 0 },
    });
    const { events } = await listAudit(world.lead.ctx, { teamId: world.team, subject: world.team, limit: 1 });
    expect(events).toMatchObject([{ action: "team.set-policy", detail: { longKernelSeconds: 0, before: null } }]);
    expect(await code(readPolicy(world.outsider.ctx, { id: world.team }))).toBe("forbidden");
    expect(await code(setPolicy(world.lead.ctx, { ...edit, version: 1 }))).toBe("forbidden");
  });

  it("is listed beside every other team's, with how many workspaces attach by themselves", async () => {
    await setPolicy(world.admin.ctx, { ...policy, teamId: world.team });
    const { id } = await makeWorkspace(world, { owner: world.member });
    await makeWorkspace(world, { owner: world.member });
    await db().update(workspaces).set({ gpuPolicy: "first-use" }).where(eq(workspaces.id, id));
    const { teams } = await listPolicies(world.admin.ctx);
    expect(teams).toMatchObject([
      { name: "nlp", workspaces: 0, policy: { version: 0, coTenancy: "any" } },
      { name: "vision", workspaces: 2, attachThemselves: 1, policy: { version: 1, coTenancy: "own-team" } },
    ]);
    expect(teams[1]?.policy).toEqual(await readPolicy(world.lead.ctx, { id: world.team }));
    expect(await code(listPolicies(world.lead.ctx))).toBe("forbidden");
  });
});

it("refuses a policy under which what is guaranteed no longer fits the devices", async () => {
  const halves = { weight: 1, priority: 0, personMilli: null, largestMilli: 500, budgetMilliHours: null };
  await setQuota(world.admin.ctx, { ...quota(world.team, 500), ...halves });
  await setQuota(world.admin.ctx, { ...quota(world.otherTeam, 1500), ...halves });
  const policy = { teamId: world.team, maxLeaseSeconds: null, idleSeconds: null } as const;
  for (const coTenancy of ["own-team", "whole-cards"] as const) {
    await expect(setPolicy(world.admin.ctx, { ...policy, coTenancy })).rejects.toMatchObject({
      ...{ code: "quota", message: expect.stringContaining("let teams share cards") as string },
    });
  }
  expect((await readPolicy(world.admin.ctx, { id: world.team })).coTenancy).toBe("any");
  await setQuota(world.admin.ctx, { ...quota(world.otherTeam, 1000), ...halves });
  await setPolicy(world.admin.ctx, { ...policy, coTenancy: "own-team" });
  // And a quota edit is proved under the policies that there are.
  expect(await code(setQuota(world.admin.ctx, { ...quota(world.otherTeam, 1500), ...halves }))).toBe("quota");
  await setPolicy(world.admin.ctx, { ...policy, coTenancy: "any" });
});

describe("who shares cards with whom", () => {
  const halves = { weight: 1, priority: 0, personMilli: null, largestMilli: 500, budgetMilliHours: null };
  const share = (teamId: string, coTenancy: "any" | "own-team" | "whole-cards") =>
    setPolicy(world.admin.ctx, { teamId, maxLeaseSeconds: null, idleSeconds: null, coTenancy });

  it("is not held up by a GPU type of which the team is promised nothing", async () => {
    // No device of it is there.
    await db()
      .insert(quotas)
      .values({ teamId: world.otherTeam, gpuType: "gone", guaranteedMilli: 1000, limitMilli: 1000 });
    expect(await code(share(world.team, "own-team"))).toBe("done");
    expect(await code(share(world.otherTeam, "own-team"))).toBe("quota");
  });

  it("may be relaxed by one team at a time where the promises do not fit", async () => {
    await setQuota(world.admin.ctx, { ...quota(world.team, 500), ...halves });
    await setQuota(world.admin.ctx, { ...quota(world.otherTeam, 1500), ...halves });
    const wholeCards = [world.team, world.otherTeam].map((teamId) => ({ teamId, coTenancy: "whole-cards" as const }));
    await db().insert(teamPolicies).values(wholeCards);
    expect(await code(share(world.team, "own-team"))).toBe("done");
    expect(await code(share(world.team, "whole-cards"))).toBe("quota");
    expect(await code(share(world.otherTeam, "any"))).toBe("done");
    expect(await code(share(world.team, "any"))).toBe("done");
    expect(await code(share(world.team, "own-team"))).toBe("quota");
  });

  it("is not relaxed where parts of cards do not fit the whole cards that were kept", async () => {
    await setQuota(world.admin.ctx, { ...quota(world.otherTeam, 0), ...halves });
    await share(world.team, "whole-cards");
    await setQuota(world.admin.ctx, { ...quota(world.team, 1800), ...halves, largestMilli: 600 });
    expect(await code(share(world.team, "own-team"))).toBe("quota");
    expect((await readPolicy(world.admin.ctx, { id: world.team })).coTenancy).toBe("whole-cards");
  });

  it("is set while somebody is being put into the team", async () => {
    const row = { teamId: world.team, userId: world.outsider.id, role: "member" as const, createdAt: new Date() };
    await db().transaction(async (joining) => {
      await joining.insert(memberships).values(row);
      expect(await code(share(world.team, "own-team"))).toBe("done");
    });
  });
});

describe("people of a team", () => {
  it("are added and removed by its lead, who sees no other team", async () => {
    const view = await addMember(world.lead.ctx, { teamId: world.team, email: world.outsider.email, role: "lead" });
    expect(view.members.find((member) => member.userId === world.outsider.id)?.role).toBe("lead");
    await addMember(world.lead.ctx, { teamId: world.team, email: world.outsider.email, role: "member" });
    await removeMember(world.lead.ctx, { teamId: world.team, userId: world.outsider.id });
    const told = await listAudit(world.lead.ctx, { teamId: world.team, subject: world.outsider.id, limit: 3 });
    expect(told.events.map(({ action, detail }) => [action, detail])).toEqual([
      ["team.remove-member", { before: { role: "member" } }],
      ["team.add-member", { role: "member", before: { role: "lead" } }],
      ["team.add-member", { role: "lead", before: null }],
    ]);
    expect((await get(world.lead.ctx, { id: world.team })).members).toHaveLength(3);
    expect(await code(get(world.lead.ctx, { id: world.otherTeam }))).toBe("forbidden");
    expect((await list(world.lead.ctx)).teams.map((team) => team.id)).toEqual([world.team]);
    const all = await list(world.admin.ctx);
    expect(all.teams).toHaveLength(2);
    const guaranteedMilli = all.teams.flatMap((team) => team.quotas).reduce((sum, one) => sum + one.guaranteedMilli, 0);
    expect(all.pool).toEqual([
      { gpuType: "soft", capacityMilli: 2000, guaranteedMilli, unallocatedMilli: 2000 - guaranteedMilli },
    ]);
    expect((await list(world.lead.ctx)).pool).toEqual([]);
    // A device that left the pool may leave more guaranteed than there is.
    const removed = async (state: "online" | "removed") => await db().update(gpuServers).set({ state });
    await removed("removed");
    const [soft] = (await list(world.admin.ctx)).pool;
    expect(soft).toMatchObject({ capacityMilli: 0, unallocatedMilli: -guaranteedMilli });
    expect(guaranteedMilli).toBeGreaterThan(0);
    await removed("online");
    // A device of a server that is away is not there to be guaranteed.
    const nowOf = async () => (await get(world.lead.ctx, { id: world.team })).quotas[0]?.guaranteedNowMilli;
    await setQuota(world.admin.ctx, quota(world.team, 1500));
    expect(await nowOf()).toBe(1500);
    await db().update(gpus).set({ state: "lost" }).where(eq(gpus.id, world.gpuIds[0]));
    expect(await nowOf()).toBeLessThan(1000);
    await db().update(gpus).set({ state: "active" }).where(eq(gpus.id, world.gpuIds[0]));
  });

  it("may leave by their lead's own hand", async () => {
    expect(await code(removeMember(world.lead.ctx, { teamId: world.team, userId: world.lead.id }))).toBe("done");
  });

  it("run nothing on its quota once they have left", async () => {
    await addMember(world.outsider.ctx, { teamId: world.otherTeam, email: world.member.email });
    const here = await makeWorkspace(world, { owner: world.member });
    const there = await makeWorkspace(world, { owner: world.member, teamId: world.otherTeam });
    const others = await makeWorkspace(world, { owner: world.colleague });
    await wait(here.id);
    await removeMember(world.lead.ctx, { teamId: world.team, userId: world.member.id });
    const rows = await db().select().from(workspaces);
    expect(rows.find((row) => row.id === here.id)).toMatchObject({ desired: "stopped", observed: "stopping" });
    for (const kept of [there, others]) {
      expect(rows.find((row) => row.id === kept.id)).toMatchObject({ desired: "running", observed: "running" });
    }
    const [request] = await db().select().from(leaseRequests).where(eq(leaseRequests.workspaceId, here.id));
    expect(request?.state).toBe("cancelled");
    const principal = await loadUser(db(), world.member.id);
    if (principal === undefined) throw new Error("nobody");
    const left = { ...world.member.ctx, principal: { ...principal, sessionId: world.member.sessionId } };
    expect(await code(start(left, { id: here.id }))).toBe("forbidden");
    expect(await code(handover(left, { id: here.id }))).toBe("forbidden");
    expect((await getWorkspace(left, { id: here.id })).can).toMatchObject({
      open: false,
      start: false,
      stop: false,
      remove: true,
    });
    expect(await code(handover(left, { id: there.id }))).toBe("done");
  });

  it("come by an invitation, which works once", async () => {
    const { link } = await invite(world.lead.ctx, { email: "New@Example.org", teamId: world.team });
    const secret = link.split("/").at(-1) ?? "";
    const nobody = { ...world.system, principal: anonymous };
    expect(await readInvite(nobody, { code: secret })).toEqual({
      email: "new@example.org",
      teamName: "vision",
      role: "member",
      hasAccount: false,
    });
    const input = { code: secret, name: "New", password: "correct horse" };
    const accepted = await Promise.all([code(acceptInvite(nobody, input)), code(acceptInvite(nobody, input))]);
    expect(accepted.sort()).toEqual(["done", "not-found"]);
    expect(await code(readInvite(nobody, { code: secret }))).toBe("not-found");
    // Who is in the team needs nothing more; who has an account is added without a link.
    expect(await code(invite(world.lead.ctx, { email: "new@example.org", teamId: world.team }))).toBe("invalid");
    expect(await code(invite(world.lead.ctx, { email: world.outsider.email, teamId: world.team }))).toBe("conflict");
    expect(await code(invite(world.lead.ctx, { email: "x@example.org", teamId: world.otherTeam }))).toBe("forbidden");
  });

  it("waits in a list until it is accepted or revoked, after which its link opens nothing", async () => {
    const { link } = await invite(world.lead.ctx, { email: "late@example.org", teamId: world.team, role: "lead" });
    const secret = link.split("/").at(-1) ?? "";
    const { invitations } = await listInvitations(world.lead.ctx, { teamId: world.team });
    expect(invitations).toMatchObject([{ email: "late@example.org", role: "lead" }]);
    const revoked = { teamId: world.team, id: invitations[0]?.id ?? "" };
    expect(await code(revokeInvitation(world.outsider.ctx, revoked))).toBe("forbidden");
    expect(await code(revokeInvitation(world.outsider.ctx, { ...revoked, teamId: world.otherTeam }))).toBe("not-found");
    expect(await revokeInvitation(world.lead.ctx, revoked)).toEqual({ invitations: [] });
    expect(await code(readInvite(world.system, { code: secret }))).toBe("not-found");
    expect(await code(revokeInvitation(world.lead.ctx, revoked))).toBe("not-found");
    expect(await code(listInvitations(world.member.ctx, { teamId: world.team }))).toBe("forbidden");
  });
});

describe("the sample user", () => {
  it("opens in a window of its own, by an admin, on record, once", async () => {
    const { url, needsPrivateWindow } = await openSample(world.admin.ctx, { teamId: world.team });
    expect(new URL(url).hostname).toBe("sample.localhost");
    expect(needsPrivateWindow).toBe(false);
    const secret = new URL(url).searchParams.get("code") ?? "";
    const nobody = { ...world.system, principal: anonymous };
    const session = await enterSample(nobody, { code: secret });
    expect(await loadUser(db(), session.userId)).toMatchObject({ isAdmin: false, teams: { [world.team]: "member" } });
    expect(await code(enterSample(nobody, { code: secret }))).toBe("forbidden");
    expect(await code(openSample(world.lead.ctx, { teamId: world.team }))).toBe("forbidden");
  });
});

it("grants whoever waits when a raised limit makes it fit", async () => {
  const { id: workspaceId } = await makeWorkspace(world, { owner: world.member });
  await setQuota(world.admin.ctx, quota(world.team, 0, 0));
  const requestId = await wait(workspaceId);
  await setQuota(world.admin.ctx, quota(world.team, 0, 1000));
  const [request] = await db().select().from(leaseRequests).where(eq(leaseRequests.id, requestId));
  expect(request?.state).toBe("granted");
  expect((await get(world.admin.ctx, { id: world.team })).quotas[0]?.usedMilli).toBe(500);
});

/** A request that waits in the queue. */
async function wait(workspaceId: string): Promise<string> {
  const requestId = newId("req");
  await db()
    .insert(leaseRequests)
    .values({
      id: requestId,
      workspaceId,
      teamId: world.team,
      userId: world.member.id,
      idempotencyKey: requestId,
      gpuType: "soft",
      milli: 500,
      memoryBytes: 4 * 2 ** 30,
      owner: { kind: "process", pid: 1, startTime: 1 },
      state: "queued",
      lastPolledAt: new Date(),
      waitUntil: new Date(Date.now() + 120_000),
    });
  return requestId;
}
