import type { Context } from "#server/context.ts";
import type { Reader } from "#server/scheduler/seen-by.ts";

/** As whom the principal looks at what others hold and wait for. */
export function readerOf({ principal }: Context): Reader {
  if (principal.kind === "workspace") return { userId: principal.userId, teamIds: [principal.teamId], seesAll: false };
  if (principal.kind !== "user") return { userId: "", teamIds: [], seesAll: principal.kind === "system" };
  return { userId: principal.userId, teamIds: Object.keys(principal.teams), seesAll: principal.isAdmin };
}
