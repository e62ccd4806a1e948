import { eq, inArray, isNull } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { deviceIntervals, gpuServers, gpus } from "#server/db/schema/index.ts";
import { poolState } from "./pool-state.ts";

/** Writes since when each device is open, draining or lost: what is not leased of it is counted as that. */
export async function recordStates(ctx: Context): Promise<void> {
  authorize(ctx.principal, "gpu-server.control");
  const [devices, open] = await Promise.all([
    ctx.db
      .select({ id: gpus.id, state: gpus.state, drainedAt: gpus.drainedAt, server: gpuServers.state })
      .from(gpus)
      .innerJoin(gpuServers, eq(gpuServers.id, gpus.serverId)),
    ctx.db.select().from(deviceIntervals).where(isNull(deviceIntervals.endedAt)),
  ]);
  const last = new Map(open.map((row) => [row.gpuId, row]));
  const changed = devices.filter((device) => last.get(device.id)?.state !== stateOf(device));
  if (changed.length === 0) return;
  await inTransaction(ctx, async (tx) => {
    const now = tx.now();
    const over = changed.flatMap(({ id }) => last.get(id)?.seq ?? []);
    if (over.length > 0) {
      await tx.db.update(deviceIntervals).set({ endedAt: now }).where(inArray(deviceIntervals.seq, over));
    }
    const begun = changed.flatMap((device) => {
      const state = stateOf(device);
      return state === undefined ? [] : [{ gpuId: device.id, state, startedAt: now }];
    });
    if (begun.length > 0) await tx.db.insert(deviceIntervals).values(begun);
  });
}

type States = Pick<typeof gpus.$inferSelect, "state" | "drainedAt"> & {
  server: (typeof gpuServers.$inferSelect)["state"];
};

/** Nothing for a device that has left the pool: its time is nobody's any more. */
function stateOf({ server, ...device }: States): "open" | "draining" | "lost" | undefined {
  if (server === "removed") return undefined;
  const state = poolState(device, server);
  return state === "active" ? "open" : state;
}
