import { authorize, type Context } from "#server/context.ts";
import { capacityByType } from "#server/services/team/capacity.ts";

/** The capacity of each GPU type in the pool, in thousandths of a device. */
export async function inPool(ctx: Context): Promise<Map<string, number>> {
  authorize(ctx.principal, "team.list");
  return await capacityByType(ctx);
}
