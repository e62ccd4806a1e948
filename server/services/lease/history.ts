import { eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { LeaseList } from "#server/contracts/gpu-server.ts";
import { leases } from "#server/db/schema/index.ts";
import { leaseItems } from "./list.ts";
import { workspacePrincipal } from "./request.ts";

const LATEST = 20;

/** The latest leases of the workspace that asks, for the panel in its JupyterLab. */
export async function history(ctx: Context): Promise<LeaseList> {
  const { workspaceId } = workspacePrincipal(ctx);
  authorize(ctx.principal, "lease.status", { workspaceId });
  return { leases: await leaseItems(ctx, eq(leases.workspaceId, workspaceId), LATEST) };
}
