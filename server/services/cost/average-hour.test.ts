import { afterAll, beforeAll, expect, it } from "vitest";
import { deviceIntervals, gpuPrices } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { quotasNow } from "#server/services/lease/quotas-now.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { averageHours } from "./average-hour.ts";
import { compute } from "./compute.ts";

const NOW = new Date("2026-11-16T00:00:00Z");
let test: TestDatabase;
let world: World;

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db, { now: () => NOW });
  await test.db.delete(deviceIntervals);
  // One device all the time, another for the last five of fifteen days: 480 hours.
  const [first, second] = world.gpuIds;
  await test.db.insert(deviceIntervals).values([
    { gpuId: first, state: "open", startedAt: new Date("2026-10-20T00:00:00Z") },
    { gpuId: second, state: "open", startedAt: new Date("2026-11-11T00:00:00Z") },
  ]);
});
afterAll(() => test.drop());

it("an hour of what is priced by the month costs what the month's costs make of it, and the launch form has it", async () => {
  expect(await averageHours(world.system, ["soft"])).toEqual(new Map());
  await test.db.insert(gpuPrices).values({ gpuType: "soft", basis: "month", micro: 960_000_000, changedAt: NOW });
  // Half of the month is over: 480 of 960.
  expect(await averageHours(world.system, ["soft", "h200"])).toEqual(new Map([["soft", 1_000_000]]));
  const [type] = (await compute(world.system, "2026-11", "team")).types;
  expect(type).toMatchObject({ cents: 480_00, hours: 480 });
  const { quotas, averageMicro } = await quotasNow(world.member.ctx);
  expect([quotas[0]?.hourMicro, averageMicro.get("soft")]).toEqual([null, 1_000_000]);
  await test.db.update(gpuPrices).set({ basis: "hour" });
  expect(await averageHours(world.system, ["soft"])).toEqual(new Map());
});
