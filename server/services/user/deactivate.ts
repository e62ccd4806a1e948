import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type UserInput, type UserView, userInput } from "#server/contracts/user.ts";
import { users } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { giveUpOfPerson } from "#server/services/reservation/give-up.ts";
import { endWaysIn } from "#server/services/session/end-ways-in.ts";
import { stopOfPerson } from "#server/services/workspace/stop-of-person.ts";
import { lockOther, refuseWithoutAdmin } from "./locked.ts";
import { viewOf } from "./view.ts";

/**
 * Closes an account: sessions and access tokens end, workspaces stop and give their GPUs back, reservations for this
 * person alone are given up. Files, teams and what was used stay, so that the account can be opened again.
 */
export async function deactivate(ctx: Context, raw: UserInput): Promise<UserView> {
  const { id } = parse(userInput, raw);
  authorize(ctx.principal, "user.deactivate");
  return await inTransaction(ctx, async (tx) => {
    const row = await lockOther(tx, id, "deactivate your own account");
    if (row.disabledAt === null) {
      if (row.isAdmin) await refuseWithoutAdmin(tx, id);
      const stopped = await stopOfPerson(tx, { userId: id });
      await giveUpOfPerson(tx, { userId: id });
      await tx.db.update(users).set({ disabledAt: tx.now() }).where(eq(users.id, id));
      await endWaysIn(tx, id);
      await audit(tx, { action: "user.deactivate", subject: id, detail: { stoppedWorkspaces: stopped } });
      await notify(tx.db, "people", id);
    }
    return await viewOf(tx, id);
  });
}

/** Opens a deactivated account again; what was stopped stays stopped, and tokens are made anew. */
export async function reactivate(ctx: Context, raw: UserInput): Promise<UserView> {
  const { id } = parse(userInput, raw);
  authorize(ctx.principal, "user.reactivate");
  return await inTransaction(ctx, async (tx) => {
    const row = await lockOther(tx, id, "reactivate your own account");
    if (row.disabledAt !== null) {
      await tx.db.update(users).set({ disabledAt: null }).where(eq(users.id, id));
      await audit(tx, { action: "user.reactivate", subject: id });
      await notify(tx.db, "people", id);
    }
    return await viewOf(tx, id);
  });
}
