import { isAllowed } from "#server/auth/authorize.ts";
import { authorize, type Context } from "#server/context.ts";

/** Whether a team's people, workspaces and requests are shown by name to whoever looks at the pool. */
export type PoolSight = (teamId: string) => boolean;

/** An admin sees all by name, a lead the led teams; who is neither is refused. */
export function poolSight(ctx: Context): PoolSight {
  const seen = teamsSeen(ctx);
  return (teamId) => seen === undefined || seen.includes(teamId);
}

/** The same as a list; undefined: all of them. */
export function teamsSeen({ principal }: Context): readonly string[] | undefined {
  if (isAllowed(principal, "pool.read")) return undefined;
  const seen = Object.keys(principal.kind === "user" ? principal.teams : {}).filter((teamId) =>
    isAllowed(principal, "pool.read", { teamId }),
  );
  if (seen.length === 0) authorize(principal, "pool.read");
  return seen;
}
