import { and, isNotNull, ne } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { workspaces } from "#server/db/schema/index.ts";

/** The pods whose end nobody has seen: the cluster's id of each, and when it joined. */
export async function listOpen(ctx: Context): Promise<{ podUid: string; createdAt: Date }[]> {
  authorize(ctx.principal, "pod.list-open");
  const rows = await ctx.db
    .select({ podUid: workspaces.podUid, createdAt: workspaces.createdAt })
    .from(workspaces)
    .where(and(isNotNull(workspaces.podUid), ne(workspaces.desired, "removed")));
  return rows.flatMap(({ podUid, createdAt }) => (podUid === null ? [] : { podUid, createdAt }));
}
