import { eq } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { gpuServers } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";

/** A server that is in the pool. */
export async function findServer(ctx: Context, serverId: string): Promise<typeof gpuServers.$inferSelect> {
  const [server] = await ctx.db.select().from(gpuServers).where(eq(gpuServers.id, serverId)).limit(1);
  if (server === undefined || server.state === "removed") {
    throw new SluiceError(
      "not-found",
      "There is no such GPU server in the pool. Reload the page to see those there are.",
    );
  }
  return server;
}
