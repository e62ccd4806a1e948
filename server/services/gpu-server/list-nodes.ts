import { and, isNotNull, ne } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { gpuServers } from "#server/db/schema/index.ts";

/** The cluster's nodes on which GPU servers are, as those have said when they connected. */
export async function listNodes(ctx: Context): Promise<string[]> {
  authorize(ctx.principal, "gpu-server.follow-node");
  const rows = await ctx.db
    .selectDistinct({ nodeName: gpuServers.nodeName })
    .from(gpuServers)
    .where(and(isNotNull(gpuServers.nodeName), ne(gpuServers.state, "removed")));
  return rows.flatMap(({ nodeName }) => nodeName ?? []);
}
