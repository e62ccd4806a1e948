import { and, desc, eq, isNull, lte, or, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { GpuPolicy } from "#server/contracts/workspace.ts";
import type { ChosenSize } from "#server/contracts/workspace-size.ts";
import { images, imageVersions, workspaceDatasets, workspaces } from "#server/db/schema/index.ts";
import { newer } from "#server/services/image/order.ts";
import { sizeAsAsked } from "#server/services/workspace-size/choose.ts";

/** What somebody has launched last, as `create` takes it, and the environment's title. */
export type LastLaunch = {
  name: string;
  image: string;
  title: string;
  /** The version that was chosen in place of the newest; undefined: it had the newest of then. */
  versionId: string | undefined;
  teamId: string;
  size: ChosenSize | undefined;
  defaultAmount: string;
  gpuType: string;
  gpuPolicy: GpuPolicy;
  /** Ids of datasets. */
  datasets: string[];
};

/** The last launch of whoever asks, whether that workspace is still there or not; undefined: there was none. */
export async function lastLaunch(ctx: Context): Promise<LastLaunch | undefined> {
  const { principal } = ctx;
  authorize(principal, "workspace.list");
  if (principal.kind !== "user") return undefined;
  const [last] = await ctx.db
    .select({
      ...{ workspace: workspaces, image: images.name, title: images.title },
      wasOlder: sql<boolean>`exists (${newer(sql`n.state = 'approved' and (n.team_ids is null or ${workspaces.teamId} = any(n.team_ids))
        and coalesce(n.approved_at, n.created_at) <= ${workspaces.createdAt}`)})`,
    })
    .from(workspaces)
    .innerJoin(imageVersions, eq(imageVersions.id, workspaces.imageVersionId))
    .innerJoin(images, eq(images.id, imageVersions.imageId))
    .where(
      and(
        eq(workspaces.ownerId, principal.userId),
        // The test of a proposal is nobody's launch.
        or(isNull(imageVersions.check), lte(imageVersions.approvedAt, workspaces.createdAt)),
      ),
    )
    .orderBy(desc(workspaces.createdAt), desc(workspaces.id))
    .limit(1);
  if (last === undefined) return undefined;
  const { id, name, teamId, defaultAmount, gpuType, gpuPolicy } = last.workspace;
  const size = await sizeAsAsked(ctx, last.workspace);
  const mounted = await ctx.db
    .select({ id: workspaceDatasets.datasetId })
    .from(workspaceDatasets)
    .where(eq(workspaceDatasets.workspaceId, id));
  const datasets = mounted.map((dataset) => dataset.id);
  const versionId = last.wasOlder ? (last.workspace.imageVersionId ?? undefined) : undefined;
  const environment = { name, image: last.image, title: last.title, versionId };
  return { ...environment, teamId, size, defaultAmount, gpuType, gpuPolicy, datasets };
}
