import { eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { SetupStatus } from "#server/contracts/setup.ts";
import { users } from "#server/db/schema/index.ts";
import { readSteps } from "#server/services/setup-step/list.ts";

/** Whether there is an admin yet. Until there is, anybody who reaches the portal sees the steps of start-up. */
export async function status(ctx: Context): Promise<SetupStatus> {
  authorize(ctx.principal, "setup.read");
  const [admin] = await ctx.db.select({ id: users.id }).from(users).where(eq(users.isAdmin, true)).limit(1);
  const done = admin !== undefined;
  return { done, steps: done && ctx.principal.kind === "anonymous" ? [] : await readSteps(ctx) };
}
