import { authorize, type Context } from "#server/context.ts";
import { capacityByType } from "#server/services/team/capacity.ts";

/** The GPU types that the pool has devices of, each with its thousandths of devices: what a form offers and warns of. */
export async function inPool(ctx: Context): Promise<Map<string, number>> {
  authorize(ctx.principal, "team.list");
  return await capacityByType(ctx);
}
