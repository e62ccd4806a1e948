import { and, eq, inArray, or } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type ListWorkspacesInput, listWorkspacesInput, type WorkspaceList } from "#server/contracts/workspace.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { readWorkspaces } from "#server/services/workspace/view.ts";

/** One's own workspaces; with scope `all` also those of teams one leads, and for an admin every one. */
export async function list(ctx: Context, raw: ListWorkspacesInput = {}): Promise<WorkspaceList> {
  authorize(ctx.principal, "workspace.list");
  const input = parse(listWorkspacesInput, raw);
  const visible = ctx.principal.kind === "user" ? visibleTo(ctx.principal, input.scope) : undefined;
  const inTeam = input.teamId === undefined ? undefined : eq(workspaces.teamId, input.teamId);
  return { workspaces: await readWorkspaces(ctx, and(visible, inTeam)) };
}

function visibleTo(principal: Extract<Context["principal"], { kind: "user" }>, scope: "mine" | "all") {
  const own = eq(workspaces.ownerId, principal.userId);
  if (scope === "mine") return own;
  if (principal.isAdmin) return undefined;
  const led = Object.entries(principal.teams).flatMap(([teamId, role]) => (role === "lead" ? [teamId] : []));
  return led.length === 0 ? own : or(own, inArray(workspaces.teamId, led));
}
