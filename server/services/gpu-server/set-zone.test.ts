import { afterAll, beforeAll, expect, it } from "vitest";
import { gpuServers } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { list } from "#server/services/gpu-server/list.ts";
import { setZone } from "#server/services/gpu-server/set-zone.ts";
import { makeWorld, type World } from "#server/services/testing.ts";

let database: TestDatabase;
let world: World;
beforeAll(async () => {
  database = await useTestDatabase();
  world = await makeWorld(database.db);
});
afterAll(async () => await database.drop());

const now = async () => {
  const { servers } = await list(world.admin.ctx);
  const server = servers.find((each) => each.id === world.serverId);
  return { zone: server?.zone, version: server?.zoneVersion };
};

it("tells the second of two who set the zone of a server meanwhile, and keeps what the first has saved", async () => {
  const { version } = await now();
  const save = (zone: string | null, seen?: number) =>
    setZone(world.admin.ctx, { serverId: world.serverId, zone, version: seen });
  expect(await save("hall-1", version)).toMatchObject({ zone: "hall-1", zoneVersion: 2 });
  await expect(save("hall-2", version)).rejects.toMatchObject({ code: "conflict", detail: { version: 2 } });
  expect(await now()).toEqual({ zone: "hall-1", version: 2 });
  await save("hall-2", 2);
  // A script that names no version replaces whatever is there.
  await save(null);
  expect(await now()).toEqual({ zone: null, version: 4 });
});

it("lets one of two through who set the zone of a server without devices at once", async () => {
  const serverId = newId("gsv");
  await database.db
    .insert(gpuServers)
    .values({ id: serverId, name: "gpu-2", publicKey: serverId, state: "online" as const });
  const save = (zone: string, version?: number) =>
    setZone(world.admin.ctx, { serverId, zone, version }).then(
      ({ zoneVersion }) => zoneVersion,
      (error: { code?: string }) => error.code,
    );
  const answers = await Promise.all(["a", "b", "c"].map((zone) => save(zone, 1)));
  expect(answers.sort()).toEqual([2, "conflict", "conflict"]);
  // Those that name no version come one after another.
  expect((await Promise.all(["a", "b", "c"].map((zone) => save(zone)))).sort()).toEqual([3, 4, 5]);
});
