import { eq } from "drizzle-orm";
import { expect, it } from "vitest";
import { deviceIntervals, gpuServers } from "#server/db/schema/index.ts";
import { useTestDatabase } from "#server/db/testing.ts";
import { makeWorld } from "#server/services/testing.ts";
import { recordStates } from "./record-states.ts";

it("writes one stretch of a state after another, without a gap, until the server is removed", async () => {
  const test = await useTestDatabase();
  try {
    const world = await makeWorld(test.db);
    const [gpuId] = world.gpuIds;
    const at = (ms: number) => new Date(1e12 + ms);
    const look = async (ms: number, state?: "draining" | "lost" | "removed") => {
      if (state !== undefined) await test.db.update(gpuServers).set({ state });
      await recordStates({ ...world.system, now: () => at(ms) });
    };
    await look(0);
    await look(1_000);
    await look(2_000, "draining");
    await look(6_000, "lost");
    await look(7_000);
    await look(9_000, "removed");
    const rows = await test.db
      .select()
      .from(deviceIntervals)
      .where(eq(deviceIntervals.gpuId, gpuId))
      .orderBy(deviceIntervals.seq);
    expect(rows).toMatchObject([
      { state: "open", startedAt: at(0), endedAt: at(2_000) },
      { state: "draining", startedAt: at(2_000), endedAt: at(6_000) },
      { state: "lost", startedAt: at(6_000), endedAt: at(9_000) },
    ]);
  } finally {
    await test.drop();
  }
});
