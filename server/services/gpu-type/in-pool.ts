import { authorize, type Context } from "#server/context.ts";
import { capacityByType } from "#server/services/team/capacity.ts";

/** The GPU types that the pool has devices of, by name: what a form offers where somebody names a type. */
export async function inPool(ctx: Context): Promise<string[]> {
  authorize(ctx.principal, "team.list");
  return [...(await capacityByType(ctx)).keys()];
}
