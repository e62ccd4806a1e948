/** What is reserved, typed as in a notebook, in parts of a GPU. */
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { gpus } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { inParts } from "./amounts.ts";
import { create } from "./create.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

const parts = (amount: string, unit: string, gpuType = "soft") => inParts(world.system, { gpuType, amount, unit });

it("a part of a GPU is what it says, and several leases together need not be whole GPUs", async () => {
  expect(await parts("2.5", "0.5")).toEqual({ milli: 2500, unitMilli: 500 });
  expect(await parts("4", "1")).toEqual({ milli: 4000, unitMilli: 1000 });
  await expect(parts("4", "2")).rejects.toThrow("unit: One GPU at most");
});

it("memory is the part of a device that it takes, of the one that has least", async () => {
  expect(await parts("2", "2G")).toEqual({ milli: 2000, unitMilli: 250 });
  expect(await parts("8G", "2G")).toEqual({ milli: 1000, unitMilli: 250 });
  // Three leases, each rounded up by itself, as they are charged.
  expect(await parts("9G", "3G")).toEqual({ milli: 1125, unitMilli: 375 });
  const [second] = world.gpuIds.slice(1);
  await test.db
    .update(gpus)
    .set({ memoryBytes: 4 * 2 ** 30 })
    .where(eq(gpus.id, second ?? ""));
  expect(await parts("8G", "2G")).toEqual({ milli: 2000, unitMilli: 500 });
  await expect(parts("6G", "6G")).rejects.toThrow("unit: 6G is more than a soft has (4.0 GiB).");
});

it("says what to type where amounts do not go together, or nobody knows the memory yet", async () => {
  await expect(parts("7G", "2G")).rejects.toThrow("amount: 7G does not go into leases of 2G without a rest.");
  await expect(parts("8G", "0.5")).rejects.toThrow("amount: Where leases are parts of a GPU");
  await expect(parts("8G", "2G", "h200")).rejects.toThrow("unit: No GPU server with h200 has joined yet");
  const when = { startsAt: "2099-01-05T10:00:00Z", endsAt: "2099-01-05T12:00:00Z" };
  const of = { teamId: world.team, gpuType: "soft", unit: "0.5", ...when };
  await expect(create(world.admin.ctx, { ...of, amount: "0,5" })).rejects.toMatchObject({
    code: "invalid",
    message: 'amount: "0,5" has a comma; write amounts with a point.',
  });
});
