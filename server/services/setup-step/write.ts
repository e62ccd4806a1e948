import { authorize, type Context, inTransaction } from "#server/context.ts";
import { type WriteSetupStepInput, writeSetupStepInput } from "#server/contracts/setup.ts";
import { setupSteps } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";

/** Records how a step of start-up stands. Going to `running` (again) starts its clock anew. */
export async function write(ctx: Context, raw: WriteSetupStepInput): Promise<void> {
  authorize(ctx.principal, "setup-step.write");
  const input = parse(writeSetupStepInput, raw);
  const now = ctx.now();
  const ended = input.state === "done" || input.state === "failed";
  await inTransaction(ctx, async (tx) => {
    await tx.db
      .insert(setupSteps)
      .values({
        id: input.id,
        title: input.title,
        state: input.state,
        message: input.message ?? null,
        startedAt: input.state === "waiting" ? null : now,
        finishedAt: ended ? now : null,
        createdAt: now,
      })
      .onConflictDoUpdate({
        target: setupSteps.id,
        set: {
          title: input.title,
          state: input.state,
          message: input.message ?? null,
          ...(input.state === "running" || input.state === "waiting" ? { finishedAt: null } : { finishedAt: now }),
        },
      });
    await notify(tx.db, "setup", input.id);
  });
}
