import { and, eq, ne } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { gpuServers, gpus } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";

/** A server that is in the pool. With `lock`, nobody else changes it until the transaction ends. */
export async function findServer(
  ctx: Context,
  serverId: string,
  options: { lock?: boolean } = {},
): Promise<typeof gpuServers.$inferSelect> {
  const query = ctx.db.select().from(gpuServers).where(eq(gpuServers.id, serverId));
  const [server] = options.lock === true ? await query.for("no key update") : await query;
  if (server === undefined || server.state === "removed") {
    throw new SluiceError(
      "not-found",
      "There is no such GPU server in the pool. Reload the page to see those there are.",
    );
  }
  return server;
}

/** A device of a server that is in the pool. With `lock`, nobody else changes it until the transaction ends. */
export async function findDevice(
  ctx: Context,
  gpuId: string,
  options: { lock?: boolean } = {},
): Promise<{ device: typeof gpus.$inferSelect }> {
  const query = ctx.db
    .select({ device: gpus })
    .from(gpus)
    .innerJoin(gpuServers, eq(gpuServers.id, gpus.serverId))
    .where(and(eq(gpus.id, gpuId), ne(gpuServers.state, "removed")));
  const [found] = options.lock === true ? await query.for("no key update", { of: gpus }) : await query;
  if (found === undefined) {
    throw new SluiceError("not-found", "There is no such device in the pool. Reload the page to see those there are.");
  }
  return found;
}
