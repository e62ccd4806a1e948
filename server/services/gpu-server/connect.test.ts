/** What gpud says of its devices when it connects: link groups, and who is placed by them. */
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { principalFromCredential } from "#server/auth/principal-from-credential.ts";
import { gpudMessage } from "#server/contracts/control.ts";
import { gpus, leases } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { request } from "#server/services/lease/request.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { connect, type Hello } from "./connect.ts";
import { devices } from "./devices.ts";

let database: TestDatabase;
let world: World;
beforeAll(async () => {
  database = await useTestDatabase();
  world = await makeWorld(database.db);
});
afterAll(async () => await database.drop());

/** gpud's devices, each with its link group; undefined: none, and a gpud of before says nothing else. */
async function connects(...linkGroups: (string | undefined)[]): Promise<void> {
  const memoryBytes = 8 * 2 ** 30;
  const profile = { name: "Software GPU", computeCapabilityMajor: 7, computeCapabilityMinor: 5, attributes: {} };
  const message = gpudMessage.parse({
    ...{ type: "hello", serverId: world.serverId, version: "0.1.0", protocol: 2, signature: "", held: [] },
    ...{ dataAddress: "tcp://127.0.0.1:1", tlsFingerprint: null },
    devices: linkGroups.map((linkGroup, index) => ({
      ...{ uuid: `GPU-${index}`, index, gpuType: "soft", model: "Software GPU", memoryBytes },
      ...(linkGroup === undefined ? {} : { linkGroup }),
      profile: { ...profile, totalMemoryBytes: memoryBytes, driverVersion: 13_000 },
    })),
  });
  await connect(world.system, message as Hello);
}

/** The devices that gpud reports now, with what the pool page shows of how they are linked. */
const linked = async () =>
  (await devices(world.admin.ctx, { serverId: world.serverId })).devices
    .filter(({ state }) => state === "active")
    .map(({ name, linkGroup }) => [name, linkGroup]);

/** Which devices somebody gets who asks for two GPUs. */
async function twoGpus(requestId: string) {
  const { credential, id } = await makeWorkspace(world, { owner: world.outsider, teamId: world.otherTeam });
  const principal = await principalFromCredential(database.db, `Bearer ${credential}`);
  const owner = { kind: "process" as const, pid: 1, startTime: 1, label: "train" };
  const asked = { requestId, amount: "2", maxDevices: 2, waitSeconds: 60, owner };
  expect((await request({ ...world.system, principal }, asked)).state).toBe("granted");
  const held = await database.db
    .select({ name: gpus.name })
    .from(leases)
    .innerJoin(gpus, eq(gpus.id, leases.gpuId))
    .where(eq(leases.workspaceId, id));
  await database.db.update(leases).set({ state: "ended" });
  return held.map(({ name }) => name).sort();
}

it("keeps each device's link group, changes it with what is reported, and clears it when nothing is", async () => {
  await connects(undefined, "1", "1");
  expect(await linked()).toEqual([
    ["soft-0", null],
    ["soft-1", "1"],
    ["soft-2", "1"],
  ]);
  await connects("0", undefined, "0");
  expect(await linked()).toEqual([
    ["soft-0", "0"],
    ["soft-1", null],
    ["soft-2", "0"],
  ]);
  await connects(undefined, undefined, undefined);
  expect((await linked()).map(([, linkGroup]) => linkGroup)).toEqual([null, null, null]);
});

it("two GPUs are placed in one link group, as it is reported by then", async () => {
  await connects(undefined, "1", "1");
  expect(await twoGpus("00000000-0000-4000-8000-000000000001")).toEqual(["soft-1", "soft-2"]);
  await connects("0", undefined, "0");
  expect(await twoGpus("00000000-0000-4000-8000-000000000002")).toEqual(["soft-0", "soft-2"]);
  await connects("0", "0", undefined);
  expect(await twoGpus("00000000-0000-4000-8000-000000000003")).toEqual(["soft-0", "soft-1"]);
});

it("a link group without a name, or one without an end, is no message of gpud's", async () => {
  await expect(connects("")).rejects.toThrow("linkGroup");
  await expect(connects("x".repeat(41))).rejects.toThrow("linkGroup");
});
