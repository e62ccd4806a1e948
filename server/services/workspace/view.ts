import { and, desc, eq, inArray, ne, type SQL } from "drizzle-orm";
import { isAllowed } from "#server/auth/authorize.ts";
import type { Principal } from "#server/auth/principal.ts";
import type { Context } from "#server/context.ts";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import { gpuServers, gpus, images, imageVersions, leases, teams, users, workspaces } from "#server/db/schema/index.ts";

/** Workspaces that are not removed, newest first, as pages and API show them to this principal. */
export async function readWorkspaces(ctx: Context, where: SQL | undefined): Promise<WorkspaceView[]> {
  const rows = await ctx.db
    .select({
      workspace: workspaces,
      ownerName: users.name,
      teamName: teams.name,
      image: images,
      version: imageVersions.version,
    })
    .from(workspaces)
    .innerJoin(users, eq(users.id, workspaces.ownerId))
    .innerJoin(teams, eq(teams.id, workspaces.teamId))
    .innerJoin(imageVersions, eq(imageVersions.id, workspaces.imageVersionId))
    .innerJoin(images, eq(images.id, imageVersions.imageId))
    .where(and(ne(workspaces.desired, "removed"), where))
    .orderBy(desc(workspaces.createdAt), desc(workspaces.id));
  const held = await readLeases(
    ctx,
    rows.map((row) => row.workspace.id),
  );
  return rows.map(({ workspace: w, ownerName, teamName, image, version }) => ({
    id: w.id,
    name: w.name,
    owner: { id: w.ownerId, name: ownerName },
    team: { id: w.teamId, name: teamName },
    image: { id: image.id, name: image.name, title: image.title, version },
    launcher: w.launcher,
    defaultMilli: w.defaultMilli,
    gpuType: w.gpuType,
    desired: w.desired,
    observed: w.observed,
    message: w.message,
    generation: w.generation,
    createdAt: w.createdAt.toISOString(),
    startedAt: w.startedAt?.toISOString() ?? null,
    stoppedAt: w.stoppedAt?.toISOString() ?? null,
    lastActivityAt: w.lastActivityAt?.toISOString() ?? null,
    leases: held.get(w.id) ?? [],
    can: possibilities(ctx.principal, w),
  }));
}

function possibilities(principal: Principal, w: typeof workspaces.$inferSelect): WorkspaceView["can"] {
  const resource = { teamId: w.teamId, ownerId: w.ownerId, workspaceId: w.id };
  const down = w.desired === "stopped" || w.observed === "failed";
  return {
    open: w.desired === "running" && w.observed === "running" && isAllowed(principal, "workspace.open", resource),
    start: down && isAllowed(principal, "workspace.start", resource),
    stop: w.desired === "running" && isAllowed(principal, "workspace.stop", resource),
    remove: isAllowed(principal, "workspace.remove", resource),
  };
}

async function readLeases(ctx: Context, workspaceIds: string[]): Promise<Map<string, WorkspaceView["leases"]>> {
  const found = new Map<string, WorkspaceView["leases"]>();
  if (workspaceIds.length === 0) return found;
  const rows = await ctx.db
    .select({ lease: leases, deviceName: gpus.name, serverName: gpuServers.name })
    .from(leases)
    .innerJoin(gpus, eq(gpus.id, leases.gpuId))
    .innerJoin(gpuServers, eq(gpuServers.id, leases.serverId))
    .where(and(inArray(leases.workspaceId, workspaceIds), ne(leases.state, "ended")))
    .orderBy(leases.grantedAt);
  for (const { lease, deviceName, serverName } of rows) {
    if (lease.state === "ended") continue;
    const list = found.get(lease.workspaceId) ?? [];
    list.push({
      id: lease.id,
      gpuType: lease.gpuType,
      milli: lease.milli,
      deviceName,
      serverName,
      label: lease.owner.label ?? null,
      state: lease.state,
      grantedAt: lease.grantedAt.toISOString(),
      expiresAt: lease.expiresAt.toISOString(),
    });
    found.set(lease.workspaceId, list);
  }
  return found;
}
