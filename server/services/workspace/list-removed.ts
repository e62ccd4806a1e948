import { and, asc, eq, gt, inArray, or, type SQL } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { RemovedWorkspaceList } from "#server/contracts/workspace.ts";
import { images, imageVersions, teams, users, workspaces } from "#server/db/schema/index.ts";
import { isRestorable } from "./kept-files.ts";

/** Maximum workspaces listed. */
const LISTED = 200;

/** Removed workspaces that the caller can restore: own ones, those of teams they lead, and all for an admin. */
export async function listRemoved(ctx: Context): Promise<RemovedWorkspaceList> {
  authorize(ctx.principal, "workspace.list");
  const where = and(isRestorable(), gt(workspaces.filesKeptUntil, ctx.now()), answersFor(ctx));
  const [rows, total] = await Promise.all([
    ctx.db
      .select({ workspace: workspaces, ownerName: users.name, teamName: teams.name, image: images })
      .from(workspaces)
      .innerJoin(users, eq(users.id, workspaces.ownerId))
      .innerJoin(teams, eq(teams.id, workspaces.teamId))
      .innerJoin(imageVersions, eq(imageVersions.id, workspaces.imageVersionId))
      .innerJoin(images, eq(images.id, imageVersions.imageId))
      .where(where)
      .orderBy(asc(workspaces.filesKeptUntil), asc(workspaces.id))
      .limit(LISTED),
    ctx.db.$count(workspaces, where),
  ]);
  return {
    workspaces: rows.flatMap(({ workspace: { id, name, ownerId, teamId, filesKeptUntil }, ...row }) =>
      filesKeptUntil === null
        ? []
        : [
            {
              ...{ id, name, owner: { id: ownerId, name: row.ownerName }, team: { id: teamId, name: row.teamName } },
              image: { name: row.image.name, title: row.image.title },
              filesKeptUntil: filesKeptUntil.toISOString(),
            },
          ],
    ),
    total,
  };
}

function answersFor({ principal }: Context): SQL | undefined {
  if (principal.kind !== "user" || principal.isAdmin) return undefined;
  const led = Object.entries(principal.teams).flatMap(([teamId, role]) => (role === "lead" ? [teamId] : []));
  const own = eq(workspaces.ownerId, principal.userId);
  return led.length === 0 ? own : or(own, inArray(workspaces.teamId, led));
}
