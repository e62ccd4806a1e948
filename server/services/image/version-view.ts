import { aliasedTable, count, desc, eq, ne, type SQL, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { type ImageVersionView, proposal } from "#server/contracts/image.ts";
import { images, imageVersions, teams, users, workspaces } from "#server/db/schema/index.ts";
import { newer, since, wasApproved } from "./order.ts";

/** Versions of environments by title, the newest of each first. */
export async function readVersions(ctx: Context, where?: SQL): Promise<ImageVersionView[]> {
  const used = ctx.db
    .select({ versionId: workspaces.imageVersionId, n: count().as("n") })
    .from(workspaces)
    .where(ne(workspaces.desired, "removed"))
    .groupBy(workspaces.imageVersionId)
    .as("used");
  const proposer = aliasedTable(users, "proposer");
  const approver = aliasedTable(users, "approver");
  const rows = await ctx.db
    .select({
      image: images,
      row: imageVersions,
      team: { id: teams.id, name: teams.name },
      proposer: proposer.name,
      approver: approver.name,
      packageCount: sql<number | null>`jsonb_array_length(${imageVersions.packages})`,
      newest: sql<boolean>`${wasApproved} and not exists (${newer(sql`true`)})`,
      // As the launch page chooses: some team gets it.
      offered: sql<boolean>`${imageVersions.state} = 'approved' and not exists (${newer(
        sql`n.state = 'approved' and (n.team_ids is null or n.team_ids @> ${imageVersions.teamIds})`,
      )})`,
      workspaces: used.n,
    })
    .from(imageVersions)
    .innerJoin(images, eq(images.id, imageVersions.imageId))
    .leftJoin(teams, eq(teams.id, imageVersions.teamId))
    .leftJoin(proposer, eq(proposer.id, imageVersions.proposedBy))
    .leftJoin(approver, eq(approver.id, imageVersions.approvedBy))
    .leftJoin(used, eq(used.versionId, imageVersions.id))
    .where(where)
    .orderBy(images.title, images.id, desc(since), desc(imageVersions.id));
  return rows.map(
    ({ image: { id, name, title, description }, row, team, proposer: by, approver: approvedBy, ...rest }) => ({
      ...{ id: row.id, version: row.version, state: row.state, image: { id, name, title, description } },
      ...{ buildState: row.buildState, buildMessage: row.buildMessage, teamIds: row.teamIds },
      builtAt: row.builtAt?.toISOString() ?? null,
      createdAt: row.createdAt.toISOString(),
      ...{ packageCount: rest.packageCount, newest: rest.newest, offered: rest.offered },
      workspaces: rest.workspaces ?? 0,
      proposed: row.check === null ? null : { ...asProposed(row), team, by, approvedBy },
    }),
  );
}

function asProposed(row: typeof imageVersions.$inferSelect) {
  return {
    ...proposal.parse(row.proposal),
    approvedAt: row.approvedAt?.toISOString() ?? null,
    check: row.check ?? "waiting",
    checkRun: row.checkRun,
    checkMessage: row.checkMessage,
    checkWorkspaceId: row.checkWorkspaceId,
  };
}
