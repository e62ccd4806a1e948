import { authorize, type Context, inTransaction } from "#server/context.ts";
import { teamUsage } from "#server/db/schema/index.ts";
import { accrue } from "#server/scheduler/decay.ts";
import { promisesNow, usedBy } from "#server/scheduler/share.ts";
import { knownGpuTypes, loadWorld } from "./world.ts";

/** Adds what each team has borrowed above its guarantee since the last time to its decayed use. */
export async function settleUsage(ctx: Context): Promise<void> {
  authorize(ctx.principal, "gpu-server.control");
  const now = ctx.now();
  const known = new Map((await ctx.db.select().from(teamUsage)).map((row) => [`${row.teamId}/${row.gpuType}`, row]));
  for (const gpuType of await knownGpuTypes(ctx.db)) {
    const world = await loadWorld(ctx.db, gpuType, now);
    await inTransaction(ctx, async (tx) => {
      // What is reserved is promised too: using it borrows nothing.
      for (const { teamId, guaranteedMilli } of promisesNow(world).quotas.values()) {
        const before = known.get(`${teamId}/${gpuType}`);
        const borrowed = Math.max(0, usedBy(teamId, world) - guaranteedMilli);
        if (before === undefined && borrowed === 0) continue;
        // The first time there is nothing to count back to.
        const amount = accrue(before?.amount ?? 0, borrowed, now.getTime() - (before?.at ?? now).getTime());
        await tx.db
          .insert(teamUsage)
          .values({ teamId, gpuType, amount, at: now })
          .onConflictDoUpdate({ target: [teamUsage.teamId, teamUsage.gpuType], set: { amount, at: now } });
      }
    });
  }
}
