import { authorize, type Context } from "#server/context.ts";

/** What to read of all teams (for admins), or of each of some (for their leads); refuses others. */
export function partsOf({ principal }: Context, teamIds: readonly string[] | undefined): { teamId?: string }[] {
  const parts = teamIds === undefined ? [{}] : teamIds.map((teamId) => ({ teamId }));
  for (const part of parts) authorize(principal, "utilisation.read", part);
  return parts;
}
