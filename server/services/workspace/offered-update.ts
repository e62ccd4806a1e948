import { type SQL, sql } from "drizzle-orm";
import { imageVersions, workspaces } from "#server/db/schema/index.ts";

/**
 * A column of a query of workspaces with their versions: the newest approved version of the same environment that the
 * team gets, when that is another. Only what was proposed is kept by version: of what comes with the installation, a
 * start takes what is there.
 */
export const offeredUpdate: SQL<{ id: string; version: string } | null> = sql`(
  select case when n.id <> ${workspaces.imageVersionId} and n."check" is not null
    then json_build_object('id', n.id, 'version', n.version) end
  from image_versions n
  where n.image_id = ${imageVersions.imageId} and n.state = 'approved'
    and (n.team_ids is null or ${workspaces.teamId} = any(n.team_ids))
  order by coalesce(n.approved_at, n.created_at) desc, n.id desc
  limit 1
)`;
