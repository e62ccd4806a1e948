import { asc } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { SetupStep, SetupStepList } from "#server/contracts/setup.ts";
import { setupSteps } from "#server/db/schema/index.ts";

/** The steps of start-up, in the order in which they were first written. */
export async function list(ctx: Context): Promise<SetupStepList> {
  authorize(ctx.principal, "setup-step.list");
  return { steps: await readSteps(ctx) };
}

/** The same for callers that have decided already who may see them. */
export async function readSteps(ctx: Context): Promise<SetupStep[]> {
  const rows = await ctx.db.select().from(setupSteps).orderBy(asc(setupSteps.createdAt), asc(setupSteps.id));
  return rows.map((row) => ({
    id: row.id,
    title: row.title,
    state: row.state,
    message: row.message,
    startedAt: row.startedAt?.toISOString() ?? null,
    finishedAt: row.finishedAt?.toISOString() ?? null,
  }));
}
