/** Drains of a server and of one device: what is granted where, what stays through a lost connection, whom it concerns. */
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { principalFromCredential } from "#server/auth/principal-from-credential.ts";
import { auditEvents, gpuServers, gpus, leases } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { request } from "#server/services/lease/request.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { connect } from "./connect.ts";
import { devices } from "./devices.ts";
import { drain } from "./drain.ts";
import { drainDevice } from "./drain-device.ts";
import { drainEffects } from "./drain-effects.ts";
import { recordStates } from "./record-states.ts";

let database: TestDatabase;
let world: World;
beforeAll(async () => {
  database = await useTestDatabase();
  world = await makeWorld(database.db);
});
afterAll(async () => await database.drop());

let requests = 0;
/** Asks for an amount from a workspace of its own; the device's id, or the state where nothing was granted. */
async function ask(amount: string) {
  const { credential, id } = await makeWorkspace(world, { owner: world.outsider, teamId: world.otherTeam });
  const principal = await principalFromCredential(database.db, `Bearer ${credential}`);
  const requestId = `00000000-0000-4000-8000-${String(requests++).padStart(12, "0")}`;
  const owner = { kind: "process" as const, pid: 1, startTime: 1, label: "train" };
  const answer = await request({ ...world.system, principal }, { requestId, amount, waitSeconds: 60, owner });
  const [row] = await database.db.select().from(leases).where(eq(leases.workspaceId, id));
  const reason = answer.state === "queued" ? answer.reason : undefined;
  return { state: answer.state, reason, workspaceId: id, row };
}
const endAll = async () => {
  await database.db.update(leases).set({ state: "ended" });
  await database.sql`update lease_requests set state = 'cancelled' where state = 'queued'`;
};
const states = async () =>
  (await devices(world.admin.ctx, { serverId: world.serverId })).devices.map(({ state, drained }) => [state, drained]);

it("of one device leaves the other to lend, and whoever waits gets the first that opens", async () => {
  const [first, second] = world.gpuIds;
  await drainDevice(world.admin.ctx, { id: first });
  expect(await states()).toEqual([
    ["draining", true],
    ["active", false],
  ]);
  expect((await ask("0.5")).row?.gpuId).toBe(second);
  await drainDevice(world.admin.ctx, { id: second });
  const waits = await ask("0.5");
  expect(waits.state).toBe("queued");
  await drainDevice(world.admin.ctx, { id: first, draining: false });
  const [granted] = await database.db.select().from(leases).where(eq(leases.workspaceId, waits.workspaceId));
  expect(granted?.gpuId).toBe(first);
  await recordStates(world.system);
  const open = await database.sql`select gpu_id, state from device_intervals where ended_at is null order by state`;
  expect([...open]).toEqual([
    { gpu_id: second, state: "draining" },
    { gpu_id: first, state: "open" },
  ]);
  const [told] = await database.db.select().from(auditEvents).where(eq(auditEvents.subject, second));
  expect(told).toMatchObject({ action: "gpu-server.drain-device", detail: { device: "soft-1", draining: true } });
  await drainDevice(world.admin.ctx, { id: second, draining: false });
  await endAll();
});

it("of a server stays apart from that of its devices, also over a new connection of its gpud", async () => {
  const [first] = world.gpuIds;
  await drainDevice(world.admin.ctx, { id: first });
  await drain(world.admin.ctx, { serverId: world.serverId });
  const both = [
    ["draining", true],
    ["draining", false],
  ];
  expect(await states()).toEqual(both);
  await database.db.update(gpuServers).set({ state: "lost" });
  const rows = await database.db.select().from(gpus).orderBy(gpus.name);
  const hello = {
    ...{ type: "hello" as const, serverId: world.serverId, dataAddress: "tcp://127.0.0.1:1", tlsFingerprint: null },
    ...{ version: "0.1.0", held: [] },
    devices: rows.map(({ uuid, gpuType, model, memoryBytes }, index) => ({
      ...{
        uuid,
        index,
        gpuType,
        model,
        memoryBytes,
        profile: { computeCapabilityMajor: 7, computeCapabilityMinor: 5 },
      },
    })),
  };
  await connect(world.system, hello as unknown as Parameters<typeof connect>[1]);
  expect(await states()).toEqual(both);
  await drain(world.admin.ctx, { serverId: world.serverId, draining: false });
  expect(await states()).toEqual([
    ["draining", true],
    ["active", false],
  ]);
  await drainDevice(world.admin.ctx, { id: first, draining: false });
});

it("tells beforehand whom it concerns and what is left", async () => {
  const [first] = world.gpuIds;
  const { row } = await ask("0.75");
  const gpuId = row?.gpuId ?? "";
  const small = await ask("0.5");
  expect(small.row?.gpuId).not.toBe(gpuId);
  const who = { userName: world.outsider.name, teamName: "nlp" };
  // Half of the other device is free, and 0.75 is asked for.
  expect(await drainEffects(world.admin.ctx, { gpuId })).toMatchObject({
    leaseCount: 1,
    leases: [{ ...who, milli: 750, fitsElsewhere: false }],
    parked: [],
    types: [
      { gpuType: "soft", openMilli: { before: 2000, after: 1000 }, guaranteedMilli: 1000, largestFreeMilli: 500 },
    ],
  });
  await database.db
    .update(leases)
    .set({ state: "ended", parkedBytes: 4096 })
    .where(eq(leases.id, small.row?.id ?? ""));
  const server = await drainEffects(world.admin.ctx, { serverId: world.serverId });
  expect(server).toMatchObject({ leases: [{ milli: 750 }], parked: [{ ...who, parkedBytes: 4096 }] });
  expect(server.types).toMatchObject([{ openMilli: { before: 2000, after: 0 }, largestFreeMilli: 0 }]);
  for (const { ctx } of [world.lead, world.member]) {
    await expect(drainEffects(ctx, { gpuId: first })).rejects.toMatchObject({ code: "forbidden" });
    await expect(drainDevice(ctx, { id: first })).rejects.toMatchObject({ code: "forbidden" });
  }
  const removed = drainDevice(world.admin.ctx, { id: "gpu-aaaaaaaaaaaaaaaaaaaaaaaaaa" });
  await expect(removed).rejects.toMatchObject({ code: "not-found" });
});

it("counts as free elsewhere only what has as much memory, too", async () => {
  await endAll();
  const { row } = await ask("0.5");
  const gpuId = row?.gpuId ?? "";
  const other = world.gpuIds.find((id) => id !== gpuId) ?? "";
  const fits = async () => (await drainEffects(world.admin.ctx, { gpuId })).leases.map((lease) => lease.fitsElsewhere);
  expect(await fits()).toEqual([true]);
  await database.db
    .update(gpus)
    .set({ memoryBytes: 2 ** 30 })
    .where(eq(gpus.id, other));
  expect(await fits()).toEqual([false]);
  await database.db
    .update(gpus)
    .set({ memoryBytes: 8 * 2 ** 30 })
    .where(eq(gpus.id, other));
  await endAll();
});

it("is named to who waits, by the device", async () => {
  const [first] = world.gpuIds;
  await drainDevice(world.admin.ctx, { id: first });
  await ask("1.0");
  const waits = await ask("0.5");
  expect(waits.reason).toMatchObject({
    rule: "free-device",
    message: expect.stringContaining("soft-0 on gpu-1 is being drained and takes no new leases.") as string,
  });
  await drainDevice(world.admin.ctx, { id: first, draining: false });
  const [granted] = await database.db.select().from(leases).where(eq(leases.workspaceId, waits.workspaceId));
  expect(granted?.gpuId).toBe(first);
  await endAll();
});
