import { eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { gpuServers } from "#server/db/schema/index.ts";

/** Notes that a gpud was heard, and how far away it is as the broker measured, microseconds; returns the state and epoch that hold for it now, nothing when it is unknown. */
export async function seen(ctx: Context, input: { serverId: string; at: Date; rttUs?: number | undefined }) {
  authorize(ctx.principal, "gpu-server.control", { serverId: input.serverId });
  const [server] = await ctx.db
    .update(gpuServers)
    .set({ lastSeenAt: input.at, ...(input.rttUs === undefined ? {} : { rttUs: input.rttUs }) })
    .where(eq(gpuServers.id, input.serverId))
    .returning({ state: gpuServers.state, epoch: gpuServers.epoch });
  return server;
}
