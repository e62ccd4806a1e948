import { eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { workspaceVariables } from "#server/db/schema/index.ts";
import { unseal } from "#server/secrets.ts";

/** All variables in the clear, for the start of the workspace and nothing else. */
export async function values(ctx: Context, workspaceId: string): Promise<Record<string, string>> {
  authorize(ctx.principal, "workspace.read-secrets");
  const rows = await ctx.db.select().from(workspaceVariables).where(eq(workspaceVariables.workspaceId, workspaceId));
  const opened = await Promise.all(
    rows.map(async ({ name, sealed }) => [name, await unseal(sealed, `${workspaceId}/${name}`)] as const),
  );
  return Object.fromEntries(opened);
}
