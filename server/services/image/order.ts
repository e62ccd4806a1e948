/** Which version of an environment comes after which, and whose launches get it. */
import { type SQL, sql } from "drizzle-orm";
import { imageVersions } from "#server/db/schema/index.ts";

/** Since when a version counts: what was proposed, since its approval; what came with the installation, since then. */
export const since = sql<Date>`coalesce(${imageVersions.approvedAt}, ${imageVersions.createdAt})`;

/** A version that has been approved, whether it is retired by now or not: proposals are none. */
export const wasApproved = sql`(${imageVersions.check} is null or ${imageVersions.approvedAt} is not null)`;

/** A proposal that was taken back; it stays for the record alone. */
export const withdrawn = sql`(${imageVersions.state} = 'retired' and not ${wasApproved})`;

/** Another version `n` of the same environment that counts since later, and is so. */
export const newer = (which: SQL) => sql`select 1 from image_versions n
  where n.image_id = ${imageVersions.imageId} and (n."check" is null or n.approved_at is not null) and ${which}
  and (coalesce(n.approved_at, n.created_at), n.id) > (${since}, ${imageVersions.id})`;

/** Whether launches of a team get this version, as far as it was rolled out to it. */
export const forTeam = (teamIds: readonly string[] | null, teamId: string): boolean =>
  teamIds === null || teamIds.includes(teamId);
