import { eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Context } from "#server/context.ts";
import { auditEvents, leaseRequests, leases, workspaceEvents, workspaces } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { newId } from "#server/ids.ts";
import { createLive, type LiveEvent } from "#server/live.ts";
import { end } from "#server/services/session/end.ts";
import { makePerson, makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { duplicate } from "#server/services/workspace/duplicate.ts";
import { events } from "#server/services/workspace/events.ts";
import { forgetOldStarts, KEPT_STARTS } from "#server/services/workspace/forget-old-starts.ts";
import { get } from "#server/services/workspace/get.ts";
import { handover } from "#server/services/workspace/handover.ts";
import { list } from "#server/services/workspace/list.ts";
import { redeemHandover } from "#server/services/workspace/redeem-handover.ts";
import { remove } from "#server/services/workspace/remove.ts";
import { rename } from "#server/services/workspace/rename.ts";
import { start } from "#server/services/workspace/start.ts";
import { stop } from "#server/services/workspace/stop.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

let counter = 0;
const name = () => `notes ${++counter}`;
const code = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error: { code?: string }) => error.code,
  );
const actionsOn = async (id: string) =>
  (await test.db.select().from(auditEvents).where(eq(auditEvents.subject, id)).orderBy(auditEvents.seq)).map(
    (e) => e.action,
  );

describe("launching", () => {
  it("writes what is wanted, who did it, and tells whoever listens", async () => {
    const live = createLive(test.sql);
    const heard: LiveEvent[] = [];
    live.subscribe(["workspace"], (event) => heard.push(event));
    await live.ready();
    const made = await create(world.member.ctx, { name: " My notes ", image: "cuda-python" });
    expect(made).toMatchObject({
      name: "My notes",
      desired: "running",
      observed: "pending",
      defaultAmount: "0.5",
      gpuType: "soft",
    });
    expect(made.team.id).toBe(world.team);
    expect(await actionsOn(made.id)).toEqual(["workspace.create"]);
    await expect.poll(() => heard.map((event) => event.id)).toContain(made.id);
    await live.close();
  });

  it("refuses a second workspace of the same name, and frees the name when the first is removed", async () => {
    const input = { name: name(), image: "cuda-python" };
    const first = await create(world.member.ctx, input);
    await expect(create(world.member.ctx, input)).rejects.toMatchObject({
      code: "conflict",
      message: `name: You have a workspace named "${input.name}" already. Choose another name.`,
    });
    expect(await code(create(world.colleague.ctx, input))).toBe("done");
    await remove(world.member.ctx, { id: first.id });
    expect(await code(create(world.member.ctx, input))).toBe("done");
  });

  it("names the environments that exist when asked for one that does not", async () => {
    await expect(create(world.member.ctx, { name: name(), image: "cuda-pyton" })).rejects.toMatchObject({
      code: "not-found",
      message: 'There is no environment "cuda-pyton". There is: cuda-python.',
    });
  });

  it("belongs to a team of the person who launches", async () => {
    expect(await code(create(world.member.ctx, { name: name(), image: "cuda-python", teamId: world.otherTeam }))).toBe(
      "forbidden",
    );
    expect(await code(create(world.admin.ctx, { name: name(), image: "cuda-python" }))).toBe("forbidden");
  });

  it("is refused beside sample data, as a copy too", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member, running: false });
    process.env.SLUICE_SAMPLE_DATA = "1";
    resetEnv();
    try {
      const message = expect.stringContaining("beside sample data") as string;
      await expect(create(world.member.ctx, { name: name(), image: "cuda-python" })).rejects.toMatchObject({ message });
      await expect(duplicate(world.member.ctx, { id, name: name() })).rejects.toMatchObject({ message });
    } finally {
      delete process.env.SLUICE_SAMPLE_DATA;
      resetEnv();
    }
  });

  it("runs at most as many workspaces of one person as the installation allows, also when all are launched at once", async () => {
    process.env.SLUICE_RUNNING_WORKSPACES = "3";
    resetEnv();
    try {
      const person = await makePerson(test.db, { name: "Mo", teams: { [world.team]: "member" } });
      const { id: stopped } = await makeWorkspace(world, { owner: person, running: false });
      const launches = Array.from({ length: 6 }, () => create(person.ctx, { name: name(), image: "cuda-python" }));
      const made = (await Promise.allSettled(launches)).flatMap((each) =>
        each.status === "fulfilled" ? [each.value.id] : [],
      );
      expect(made).toHaveLength(3);
      const [first = ""] = made;
      const message = "You have 3 running workspaces, which is the limit for one person. Stop one first.";
      await expect(start(person.ctx, { id: stopped })).rejects.toMatchObject({ code: "conflict", message });
      expect(await code(duplicate(person.ctx, { id: first, name: name() }))).toBe("conflict");
      // What runs already is no further one.
      expect(await code(start(person.ctx, { id: first }))).toBe("done");
      await stop(person.ctx, { id: first });
      expect(await code(start(person.ctx, { id: stopped }))).toBe("done");
      expect(await code(create(world.colleague.ctx, { name: name(), image: "cuda-python" }))).toBe("done");
    } finally {
      process.env.SLUICE_RUNNING_WORKSPACES = "1000";
      resetEnv();
    }
  });

  it.each(["", " ", "-x", "a/b", "x".repeat(61), "<b>"])("refuses the name %j", async (wrong) => {
    expect(await code(create(world.member.ctx, { name: wrong, image: "cuda-python" }))).toBe("invalid");
  });
});

describe("renaming", () => {
  it("is seen everywhere at once, in the audit, and changes nothing else", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member, name: name() });
    const before = await get(world.member.ctx, { id });
    const renamed = await rename(world.member.ctx, { id, name: "  Final plots " });
    expect(renamed).toEqual({ ...before, name: "Final plots" });
    expect((await list(world.lead.ctx, { scope: "all", search: "final plots" })).workspaces.map((w) => w.id)).toEqual([
      id,
    ]);
    await rename(world.member.ctx, { id, name: "Final plots" });
    const events = await test.db.select().from(auditEvents).where(eq(auditEvents.subject, id));
    expect(events.map(({ action, detail }) => [action, detail])).toEqual([
      ["workspace.rename", { before: { name: before.name }, after: { name: "Final plots" } }],
    ]);
  });

  it("is refused for a name in use by the owner, and for everybody but the owner", async () => {
    const [one, two] = [name(), name()];
    await makeWorkspace(world, { owner: world.member, name: one });
    const { id } = await makeWorkspace(world, { owner: world.member, name: two });
    await expect(rename(world.member.ctx, { id, name: one })).rejects.toMatchObject({
      code: "conflict",
      message: `name: You have a workspace named "${one}" already. Choose another name.`,
    });
    expect(await code(rename(world.lead.ctx, { id, name: name() }))).toBe("forbidden");
    expect(await code(rename(world.colleague.ctx, { id, name: name() }))).toBe("not-found");
  });
});

describe("stopping and starting", () => {
  it("ends what the workspace holds and waits for", async () => {
    const workspace = await makeWorkspace(world, { owner: world.member });
    const request = await makeRequest(workspace.id, "granted");
    await makeRequest(workspace.id, "queued");
    const lease = await makeLease(workspace.id, request);
    const seen = async () => (await get(world.member.ctx, { id: workspace.id })).leases;
    expect(await seen()).toMatchObject([{ releaseAt: null }]);
    // Its holder has been told that it is taken back.
    const releaseAt = new Date(Date.now() + 60_000);
    await test.db.update(leases).set({ releaseAt }).where(eq(leases.id, lease));
    expect(await seen()).toMatchObject([{ releaseAt: releaseAt.toISOString() }]);
    const stopped = await stop(world.member.ctx, { id: workspace.id });
    expect(stopped).toMatchObject({ desired: "stopped", observed: "stopping" });
    const [row] = await test.db.select().from(leases).where(eq(leases.id, lease));
    expect(["ending", "ended"]).toContain(row?.state);
    const waiting = await test.db.select().from(leaseRequests).where(eq(leaseRequests.workspaceId, workspace.id));
    expect(waiting.map((r) => r.state).sort()).toEqual(["cancelled", "granted"]);
  });

  it("raises the generation with each start and changes nothing when it runs already", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member, running: false });
    expect(await start(world.member.ctx, { id })).toMatchObject({
      desired: "running",
      observed: "pending",
      generation: 2,
    });
    expect(await start(world.member.ctx, { id })).toMatchObject({ generation: 2 });
    expect(await actionsOn(id)).toEqual(["workspace.start"]);
  });

  it("starts again what failed", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member });
    await test.db.update(workspaces).set({ observed: "failed", message: "no room" }).where(eq(workspaces.id, id));
    expect(await start(world.member.ctx, { id })).toMatchObject({ observed: "pending", message: null, generation: 2 });
  });
});

describe("who sees and does what", () => {
  it("shows a person their own, a lead the team's, an admin all", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member });
    const sees = async (ctx: Context) => (await list(ctx, { scope: "all" })).workspaces.some((w) => w.id === id);
    expect(await sees(world.member.ctx)).toBe(true);
    expect(await sees(world.lead.ctx)).toBe(true);
    expect(await sees(world.admin.ctx)).toBe(true);
    expect(await sees(world.colleague.ctx)).toBe(false);
    expect(await sees(world.outsider.ctx)).toBe(false);
    expect((await list(world.lead.ctx)).workspaces.some((w) => w.id === id)).toBe(false);
  });

  it("lists them newest first, a page at a time, by words and state", async () => {
    const made: string[] = [];
    for (const name of ["alpha one", "alpha two", "alpha 100%", "beta-1"]) {
      made.unshift((await makeWorkspace(world, { owner: world.member, name, running: name !== "beta-1" })).id);
    }
    const names = async (input: Parameters<typeof list>[1], ctx = world.lead.ctx) => {
      const { workspaces, total } = await list(ctx, input);
      return { names: workspaces.map((w) => w.name), total };
    };
    const seen: string[] = [];
    for (let after: string | null | undefined; after !== null; ) {
      const page = await list(world.member.ctx, { limit: 2, after });
      expect(page.workspaces.length).toBeLessThanOrEqual(2);
      seen.push(...page.workspaces.map((w) => w.id));
      after = page.next;
      // What comes meanwhile moves nothing.
      await makeWorkspace(world, { owner: world.member });
    }
    expect(seen.filter((id) => made.includes(id))).toEqual(made);
    expect(new Set(seen).size).toBe(seen.length);
    expect(await names({ scope: "others", search: "ALPHA max", limit: 1 })).toEqual({
      names: ["alpha 100%"],
      total: 3,
    });
    expect(await names({ scope: "others", search: "0%" })).toEqual({ names: ["alpha 100%"], total: 1 });
    expect(await names({ scope: "others", search: "ta-1", state: "running" })).toEqual({ names: [], total: 0 });
    expect(await names({ scope: "others", search: "ta-1", state: "stopped" })).toEqual({ names: ["beta-1"], total: 1 });
    expect(await names({ scope: "others", search: "alpha" }, world.colleague.ctx)).toEqual({ names: [], total: 0 });
    expect(await names({ scope: "mine", search: "alpha" })).toEqual({ names: [], total: 0 });
  });

  it("does not tell a stranger that it exists", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member });
    expect(await code(get(world.colleague.ctx, { id }))).toBe("not-found");
    expect(await code(get(world.outsider.ctx, { id: newId("ws") }))).toBe("not-found");
    expect(await code(events(world.outsider.ctx, { id }))).toBe("not-found");
  });

  it("lets an admin stop and remove, but not open", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member });
    expect(await code(handover(world.admin.ctx, { id }))).toBe("forbidden");
    expect(await code(handover(world.lead.ctx, { id }))).toBe("forbidden");
    expect((await get(world.admin.ctx, { id })).can).toEqual({
      ...{ open: false, start: false, stop: true, remove: true },
      ...{ restart: false, duplicate: false, work: false, change: false, unshare: true },
    });
    expect(await code(stop(world.admin.ctx, { id }))).toBe("done");
    expect(await code(remove(world.admin.ctx, { id }))).toBe("done");
    expect(await code(get(world.member.ctx, { id }))).toBe("not-found");
  });
});

describe("the log of starts", () => {
  type Line = typeof workspaceEvents.$inferInsert;
  const line = (of: Pick<Line, "workspaceId" | "generation">, message: string, kind: Line["kind"] = "log"): Line => ({
    ...of,
    ...{ kind, step: "environment", message },
  });

  it("shows a new start after any number of lines, and its steps before its own", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member });
    const printed = (generation: number) =>
      Array.from({ length: 60 }, (_, index) => line({ workspaceId: id, generation }, `line ${index}`));
    const step = line({ workspaceId: id, generation: 2 }, "Installing", "step-started");
    await test.db.insert(workspaceEvents).values([...printed(1), step, ...printed(2)]);
    const shown = (await events(world.member.ctx, { id, limit: 50 })).events;
    expect(shown).toHaveLength(50);
    expect(shown[0]).toMatchObject({ generation: 2, message: "Installing" });
    expect(shown.slice(1).map((event) => event.message)).toEqual(
      Array.from({ length: 49 }, (_, index) => `line ${index + 11}`),
    );
    expect((await events(world.member.ctx, { id, generation: 1, limit: 500 })).events).toHaveLength(60);
    // Who pages from the beginning, or follows, misses nothing.
    const first = (await events(world.member.ctx, { id, after: 0, limit: 70 })).events;
    const rest = (await events(world.member.ctx, { id, after: first.at(-1)?.seq ?? 0 })).events;
    expect([first.length, rest.length]).toEqual([70, 51]);
  });

  it("is kept for the last starts only", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member });
    const kept = await makeWorkspace(world, { owner: world.member });
    for (const workspaceId of [id, kept.id]) {
      await test.db
        .insert(workspaceEvents)
        .values([1, 2, 3].map((generation) => line({ workspaceId, generation }, "")));
    }
    await forgetOldStarts(test.db, { workspaceId: id, generation: KEPT_STARTS + 2 });
    const starts = async (of: string) => (await events(world.member.ctx, { id: of })).events.map((e) => e.generation);
    expect(await starts(id)).toEqual([3]);
    expect(await starts(kept.id)).toEqual([1, 2, 3]);
  });
});

describe("the way in", () => {
  let workspaceId: string;
  beforeEach(async () => {
    workspaceId = (await makeWorkspace(world, { owner: world.member })).id;
  });
  const codeOf = (url: string) => new URL(url).searchParams.get("code") ?? "";

  it("is on the workspace's own hostname and works once", async () => {
    const { url, expiresAt } = await handover(world.member.ctx, { id: workspaceId });
    expect(new URL(url).hostname).toBe(`${workspaceId}.localhost`);
    expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(60_000);
    const input = { code: codeOf(url), workspaceId };
    expect(await redeemHandover(world.system, input)).toEqual({
      userId: world.member.id,
      sessionId: world.member.sessionId,
      workspaceId,
    });
    expect(await code(redeemHandover(world.system, input))).toBe("forbidden");
  });

  it("gives one of many that try at once", async () => {
    const { url } = await handover(world.member.ctx, { id: workspaceId });
    const tries = Array.from({ length: 8 }, () =>
      code(redeemHandover(world.system, { code: codeOf(url), workspaceId })),
    );
    expect((await Promise.all(tries)).filter((result) => result === "done")).toHaveLength(1);
  });

  it("is refused on another workspace's hostname, after a minute, and after signing out", async () => {
    const other = await makeWorkspace(world, { owner: world.member });
    const first = await handover(world.member.ctx, { id: workspaceId });
    expect(await code(redeemHandover(world.system, { code: codeOf(first.url), workspaceId: other.id }))).toBe(
      "forbidden",
    );
    const second = await handover(world.member.ctx, { id: workspaceId });
    const later = { ...world.system, now: () => new Date(Date.now() + 61_000) };
    expect(await code(redeemHandover(later, { code: codeOf(second.url), workspaceId }))).toBe("forbidden");
    const third = await handover(world.member.ctx, { id: workspaceId });
    await end(world.member.ctx, { sessionId: world.member.sessionId });
    expect(await code(redeemHandover(world.system, { code: codeOf(third.url), workspaceId }))).toBe("forbidden");
  });

  it("is there only while it runs", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member, running: false });
    expect(await code(handover(world.member.ctx, { id }))).toBe("conflict");
  });
});

async function makeRequest(workspaceId: string, state: "granted" | "queued"): Promise<string> {
  const id = newId("req");
  await test.db.insert(leaseRequests).values({
    id,
    workspaceId,
    teamId: world.team,
    userId: world.member.id,
    idempotencyKey: id,
    gpuType: "soft",
    milli: 500,
    memoryBytes: 4 * 2 ** 30,
    owner: { kind: "process", pid: 1, startTime: 1 },
    state,
    lastPolledAt: new Date(),
    waitUntil: new Date(Date.now() + 120_000),
  });
  return id;
}

async function makeLease(workspaceId: string, requestId: string): Promise<string> {
  const id = newId("lea");
  await test.db.insert(leases).values({
    id,
    requestId,
    workspaceId,
    teamId: world.team,
    userId: world.member.id,
    gpuId: world.gpuIds[0],
    serverId: world.serverId,
    gpuType: "soft",
    milli: 500,
    memoryBytes: 4 * 2 ** 30,
    owner: { kind: "process", pid: 1, startTime: 1 },
    state: "active",
    epoch: 1,
    grantedAt: new Date(),
    ownerSeenAt: new Date(),
    expiresAt: new Date(Date.now() + 3600_000),
  });
  return id;
}
