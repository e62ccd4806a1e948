/** Idle workspaces: whose limit holds, when they are stopped, and what keeps them. */
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Context } from "#server/context.ts";
import { auditEvents, teamPolicies, workspaceSamples, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { list as listNotices } from "#server/services/notice/list.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { extend } from "./extend.ts";
import { get } from "./get.ts";
import { idleLimit } from "./idle-limit.ts";
import { recordSamples } from "./record-samples.ts";
import { samples } from "./samples.ts";
import { setIdleLimit } from "./set-idle-limit.ts";
import { stopIdle } from "./stop-idle.ts";
import { warnOfStop } from "./warn-of-stop.ts";

let test: TestDatabase;
let world: World;
const hour = 3600_000;

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

const at = (ctx: Context, ms: number): Context => ({ ...ctx, now: () => new Date(ms) });

async function runningSince(hoursAgo: number): Promise<string> {
  const { id } = await makeWorkspace(world, { owner: world.member });
  const since = new Date(Date.now() - hoursAgo * hour);
  await test.db.update(workspaces).set({ startedAt: since, lastActivityAt: since }).where(eq(workspaces.id, id));
  return id;
}

describe("the idle limit that holds", () => {
  it.each([
    [{ own: null, team: null, installation: 28_800 }, 28_800],
    [{ own: null, team: 3600, installation: 28_800 }, 3600],
    [{ own: 600, team: 3600, installation: 28_800 }, 600],
    [{ own: 7200, team: 3600, installation: 28_800 }, 3600],
    [{ own: null, team: null, installation: 0 }, null],
    [{ own: 600, team: null, installation: 0 }, 600],
  ])("of %j is %j", (limits, seconds) => {
    expect(idleLimit(limits)).toBe(seconds);
  });
});

describe("an idle workspace", () => {
  it("is stopped after its limit, and its page says why", async () => {
    const [idle, active] = [await runningSince(8.1), await runningSince(7.9)];
    expect(await stopIdle(world.system)).toEqual([idle]);
    expect(await get(world.member.ctx, { id: idle })).toMatchObject({
      desired: "stopped",
      observed: "stopping",
      message: "Stopped after 8 h without activity. Files and packages are kept.",
      stopsAt: null,
    });
    expect((await get(world.member.ctx, { id: active })).desired).toBe("running");
    const [event] = await test.db.select().from(auditEvents).where(eq(auditEvents.subject, idle));
    expect(event).toMatchObject({ action: "workspace.stop", actorKind: "system", detail: { because: "idle" } });
    expect(await stopIdle(world.system)).toEqual([]);
  });

  it("has its owner told before it stops, once, and that taken back when the stop moves", async () => {
    const id = await runningSince(7.5);
    const stop = Date.parse((await get(world.member.ctx, { id })).stopsAt ?? "");
    const titles = async () => {
      const { notices } = await listNotices(world.member.ctx);
      return notices.filter((notice) => notice.href === `/workspaces/${id}`).map(({ kind, dueAt }) => [kind, dueAt]);
    };
    await warnOfStop(at(world.system, stop - 16 * 60_000));
    expect(await titles()).toEqual([]);
    await warnOfStop(at(world.system, stop - 15 * 60_000));
    await warnOfStop(at(world.system, stop - 14 * 60_000));
    expect(await titles()).toEqual([["workspace-stop", new Date(stop).toISOString()]]);
    await extend(world.member.ctx, { id, forSeconds: 3600 });
    await warnOfStop(at(world.system, stop - 13 * 60_000));
    expect(await titles()).toEqual([]);
    await warnOfStop(at(world.system, stop + 50 * 60_000));
    expect(await titles()).toEqual([["workspace-stop", new Date(stop + hour).toISOString()]]);
    // What has happened is history, not taken back.
    expect(await stopIdle(at(world.system, stop + hour))).toContain(id);
    await warnOfStop(at(world.system, stop + hour + 1));
    expect(await titles()).toHaveLength(1);
  });

  it("follows its team, and then its own limit, which is at most its team's", async () => {
    const id = await runningSince(0);
    await test.db.insert(teamPolicies).values({ teamId: world.team, workspaceIdleSeconds: 7200 });
    expect((await get(world.member.ctx, { id })).idleSeconds).toBe(7200);
    expect((await setIdleLimit(world.member.ctx, { id, idleSeconds: 600 })).idleSeconds).toBe(600);
    await expect(setIdleLimit(world.member.ctx, { id, idleSeconds: 7201 })).rejects.toMatchObject({
      message: "idleSeconds: Your team's workspaces stop after at most 2 h.",
    });
    await test.db.delete(teamPolicies);
  });

  it("is kept for as long as somebody asked for, up to 7 days", async () => {
    const id = await runningSince(7.5);
    const before = await get(world.member.ctx, { id });
    const after = await extend(world.member.ctx, { id, forSeconds: 3600 });
    expect(Date.parse(after.stopsAt ?? "") - Date.parse(before.stopsAt ?? "")).toBe(hour);
    expect(await stopIdle(at(world.system, Date.now() + hour))).not.toContain(id);
    expect(await stopIdle(at(world.system, Date.now() + 1.6 * hour))).toContain(id);
    await expect(extend(world.member.ctx, { id, forSeconds: 60 })).rejects.toMatchObject({ code: "conflict" });
    const long = await runningSince(0);
    await expect(extend(world.member.ctx, { id: long, forSeconds: 7 * 86_400 })).rejects.toMatchObject({
      code: "refused",
    });
  });
});

describe("what was measured", () => {
  it("goes to the row and the chart, keeps it from being idle, and is deleted after a day", async () => {
    const id = await runningSince(7);
    const now = Date.now();
    const sample = { workspaceId: id, generation: 1, memoryBytes: 300 * 2 ** 20, activeAt: new Date(now - hour) };
    await recordSamples(at(world.system, now - 25 * hour), [{ ...sample, cpuMilli: 900, activeAt: null }]);
    await recordSamples(at(world.system, now - 60_000), [{ ...sample, cpuMilli: 250 }]);
    await recordSamples(at(world.system, now), [
      { ...sample, cpuMilli: 750 },
      // A run that is over meanwhile.
      { ...sample, workspaceId: await runningSince(1), generation: 7, cpuMilli: 5 },
    ]);
    const view = await get(world.member.ctx, { id });
    expect(view).toMatchObject({ cpuMilli: 750, memoryBytes: 300 * 2 ** 20 });
    expect(Date.parse(view.stopsAt ?? "")).toBe(now - hour + 8 * hour);
    const chart = await samples(at(world.member.ctx, now + 1), { id, minutes: 60 });
    expect(chart.samples.map((one) => one.cpuMilli)).toEqual([250, 750]);
    expect(await test.db.select().from(workspaceSamples)).toHaveLength(2);
  });
});
