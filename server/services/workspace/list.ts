import { and, eq, inArray, ne, or, type SQL, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type ListWorkspacesInput, listWorkspacesInput, type WorkspaceList } from "#server/contracts/workspace.ts";
import { images, teams, users, workspaces } from "#server/db/schema/index.ts";
import { hasWords } from "#server/db/search.ts";
import { refuseUnknownPlace } from "#server/page-of.ts";
import { parse } from "#server/parse.ts";
import { roleOf } from "#server/services/workspace/given-role.ts";
import { countWorkspaces, readWorkspaces } from "#server/services/workspace/view.ts";

/**
 * One's own workspaces; with scope `all` also those one was invited to and those of teams one leads, and for an admin
 * every one. Newest first, a page at a time.
 */
export async function list(ctx: Context, raw: ListWorkspacesInput = {}): Promise<WorkspaceList> {
  authorize(ctx.principal, "workspace.list");
  const input = parse(listWorkspacesInput, raw);
  const { scope, teamId, state, limit, after } = input;
  const visible = ctx.principal.kind === "user" ? visibleTo(ctx.principal, scope) : undefined;
  const matching = and(
    visible,
    teamId === undefined ? undefined : eq(workspaces.teamId, teamId),
    state === undefined ? undefined : eq(workspaces.observed, state),
    ...hasWords(input.search, (contains) => [workspaces.name, users.name, teams.name, images.title].map(contains)),
  );
  const [rows, total] = await Promise.all([
    readWorkspaces(ctx, and(matching, after === undefined ? undefined : isAfter(after)), limit + 1),
    countWorkspaces(ctx, matching),
  ]);
  const row = (id: string) => and(visible, eq(workspaces.id, id));
  await refuseUnknownPlace(ctx, rows, { after, table: workspaces, row });
  const page = rows.slice(0, limit);
  return { workspaces: page, total, next: rows.length > limit ? (page.at(-1)?.id ?? null) : null };
}

type Scope = "mine" | "shared" | "others" | "all";

function visibleTo(principal: Extract<Context["principal"], { kind: "user" }>, scope: Scope) {
  const own = eq(workspaces.ownerId, principal.userId);
  if (scope === "mine") return own;
  const shared = sql`${roleOf(principal)} is not null`;
  if (scope === "shared") return shared;
  // Workspaces shared with the caller are listed under `shared` only.
  const others = and(ne(workspaces.ownerId, principal.userId), sql`${roleOf(principal)} is null`);
  if (principal.isAdmin) return scope === "others" ? others : undefined;
  const led = Object.entries(principal.teams).flatMap(([teamId, role]) => (role === "lead" ? [teamId] : []));
  const inLed = led.length === 0 ? sql`false` : inArray(workspaces.teamId, led);
  return scope === "others" ? and(others, inLed) : or(own, inLed, shared);
}

/** Behind a workspace in the order of the list: by its own place, so that those that come and go meanwhile move nothing. */
const isAfter = (id: string): SQL =>
  sql`(${workspaces.createdAt}, ${workspaces.id}) < (select created_at, id from workspaces where id = ${id})`;
