/** The pool as an admin, a lead and a member see it, and what an admin says of its devices. */
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { principalFromCredential } from "#server/auth/principal-from-credential.ts";
import { auditEvents } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { request } from "#server/services/lease/request.ts";
import { makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { devices } from "./devices.ts";
import { map } from "./map.ts";
import { overview } from "./overview.ts";
import { queue } from "./queue.ts";
import { setKind } from "./set-kind.ts";

let database: TestDatabase;
let world: World;
let requests = 0;

async function ask(owner: Person, teamId: string, name: string, amount: string) {
  const { credential } = await makeWorkspace(world, { owner, teamId, name });
  const principal = await principalFromCredential(database.db, `Bearer ${credential}`);
  const requestId = `00000000-0000-4000-8000-${String(requests++).padStart(12, "0")}`;
  const asked = { requestId, amount, waitSeconds: 60, owner: { kind: "process" as const, pid: 1, startTime: 1 } };
  return (await request({ ...world.system, principal }, asked)).state;
}

beforeAll(async () => {
  database = await useTestDatabase();
  world = await makeWorld(database.db);
  expect(await ask(world.member, world.team, "digits", "0.5")).toBe("granted");
  for (const name of ["secret plan", "second plan", "third plan"]) {
    expect(await ask(world.outsider, world.otherTeam, name, "0.5")).toBe("granted");
  }
  expect(await ask(world.outsider, world.otherTeam, "fourth plan", "0.5")).toBe("queued");
  expect(await ask(world.member, world.team, "later", "0.5")).toBe("queued");
});
afterAll(async () => await database.drop());

it("tells an admin of every lease and request, and by team what each holds", async () => {
  const pool = await map(world.admin.ctx);
  expect(pool.teams).toEqual([
    { teamId: world.otherTeam, teamName: "nlp", milli: 1500 },
    { teamId: world.team, teamName: "vision", milli: 500 },
  ]);
  expect(pool.servers[0]?.teams).toEqual(pool.teams.map(({ teamId, milli }) => ({ teamId, milli })));
  const all = await devices(world.admin.ctx, { serverId: world.serverId });
  expect(all.devices.flatMap(({ leases }) => leases)).toHaveLength(4);
  for (const device of all.devices) {
    expect(device.teams.reduce((sum, { milli }) => sum + milli, 0)).toBe(device.leasedMilli);
  }
});

it("tells who waits by itself: of all or of one type, found by words, a page at a time", async () => {
  // Estimates run down as time goes by.
  const at = new Date();
  const ctx = { ...world.admin.ctx, now: () => at };
  const all = await queue(ctx);
  expect(all).toMatchObject({ queued: [{ gpuType: "soft", count: 2 }], rowCount: 2, next: null });
  const { queue: before } = await overview(ctx);
  expect(before.map(({ workspaceName }) => workspaceName)).toEqual(["fourth plan", "later"]);
  expect(all.rows).toEqual(before);
  const found = await queue(ctx, { search: "OTO fourth", gpuType: "soft" });
  expect(found.rows.map(({ workspaceName }) => workspaceName)).toEqual(["fourth plan"]);
  expect((await queue(ctx, { gpuType: "a100" })).rows).toEqual([]);
  const first = await queue(ctx, { limit: 1 });
  const rest = await queue(ctx, { limit: 1, after: first.next ?? "" });
  expect([...first.rows, ...rest.rows]).toEqual(before);
  expect(rest.next).toBeNull();
  // The last one of a page has left: the next page goes on behind its place.
  const gone = (first.next ?? "").replace(/[^ ]+$/, "req-0");
  expect((await queue(ctx, { limit: 1, after: gone })).rows).toEqual(first.rows);
  const behind = (first.next ?? "").replace(/[^ ]+$/, "req-zzzz");
  expect((await queue(ctx, { limit: 1, after: behind })).rows).toEqual(rest.rows);
  // A lead reads the led team's, and how many wait at all.
  const own = await queue(world.lead.ctx);
  expect(own).toMatchObject({ queued: [{ count: 2 }], rows: [{ workspaceName: "later", of: 2 }], rowCount: 1 });
  await expect(queue(world.member.ctx)).rejects.toMatchObject({ code: "forbidden" });
});

it("tells a lead of other teams how much they hold, and neither who nor for what", async () => {
  const { ctx } = world.lead;
  const [pool, all, whole] = await Promise.all([map(ctx), devices(ctx, { serverId: world.serverId }), overview(ctx)]);
  expect(pool.teams).toEqual((await map(world.admin.ctx)).teams);
  expect(pool.totals).toMatchObject([{ leasedMilli: 2000, queued: 2 }]);
  expect(whole.queue).toMatchObject([{ workspaceName: "later", of: 2 }]);
  expect(all.devices.map(({ leasedMilli }) => leasedMilli)).toEqual([1000, 1000]);
  expect(all.devices.flatMap(({ leases }) => leases).map(({ workspaceName }) => workspaceName)).toEqual(["digits"]);
  for (const answer of [pool, all, whole]) {
    const text = JSON.stringify(answer);
    expect(text).toContain(world.team);
    expect(text).not.toMatch(/plan|Oto/);
    expect(text).not.toContain(world.outsider.id);
  }
});

it("finds nothing for a lead by the names of others", async () => {
  const found = async (person: Person, search: string) => (await map(person.ctx, { search })).serverCount;
  expect(await found(world.admin, "secret")).toBe(1);
  expect(await found(world.lead, "secret")).toBe(0);
  expect(await found(world.lead, "digits")).toBe(1);
  expect(await found(world.lead, "nlp")).toBe(1);
});

it("is not for members", async () => {
  for (const read of [map, overview]) {
    await expect(read(world.member.ctx)).rejects.toMatchObject({ code: "forbidden" });
  }
});

it("lists a device as what an admin says it is, and tells the second of two who say so at once", async () => {
  const [id] = world.gpuIds;
  await setKind(world.admin.ctx, { id, kind: "passthrough", was: "shared" });
  const second = setKind(world.admin.ctx, { id, kind: "mig", was: "shared" });
  await expect(second).rejects.toMatchObject({ code: "conflict", detail: { kind: "passthrough" } });
  await expect(setKind(world.lead.ctx, { id, kind: "mig" })).rejects.toMatchObject({ code: "forbidden" });
  const kinds = (await devices(world.lead.ctx, { serverId: world.serverId })).devices.map(({ kind }) => kind);
  expect(kinds).toEqual(["passthrough", "shared"]);
  expect((await map(world.admin.ctx, { search: "passthrough" })).serverCount).toBe(1);
  const [entry] = await database.db.select().from(auditEvents).where(eq(auditEvents.action, "gpu-server.set-kind"));
  expect(entry?.detail).toEqual({ device: "soft-0", before: "shared", kind: "passthrough" });
});
