import { and, isNotNull, ne } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { workspaces } from "#server/db/schema/index.ts";

/** The pods whose end nobody has seen: the cluster's id of each, its namespace and name. */
export async function listOpen(ctx: Context): Promise<{ podUid: string; namespace: string; name: string }[]> {
  authorize(ctx.principal, "pod.list-open");
  const rows = await ctx.db
    .select({ podUid: workspaces.podUid, full: workspaces.name })
    .from(workspaces)
    .where(and(isNotNull(workspaces.podUid), ne(workspaces.desired, "removed")));
  return rows.flatMap(({ podUid, full }) => {
    const [namespace = "", name = ""] = full.split("/");
    return podUid === null ? [] : { podUid, namespace, name };
  });
}
