import { isAllowed } from "#server/auth/authorize.ts";
import { authorize, type Context } from "#server/context.ts";

/** Whether a team's people, workspaces and requests are shown by name to whoever looks at the pool. */
export type PoolSight = (teamId: string) => boolean;

/** An admin sees all by name, a lead the led teams; who is neither is refused. */
export function poolSight({ principal }: Context): PoolSight {
  if (isAllowed(principal, "pool.read")) return () => true;
  const seen = Object.keys(principal.kind === "user" ? principal.teams : {}).filter((teamId) =>
    isAllowed(principal, "pool.read", { teamId }),
  );
  if (seen.length === 0) authorize(principal, "pool.read");
  return (teamId) => seen.includes(teamId);
}
