import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type SetAdminInput, setAdminInput, type UserView } from "#server/contracts/user.ts";
import { users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { endOpened } from "#server/services/session/end-ways-in.ts";
import { lockOther, refuseWithoutAdmin } from "./locked.ts";
import { viewOf } from "./view.ts";

/**
 * Makes a person an admin, or takes that back. It counts at their next click. Whoever a group made an admin is one by
 * hand from then on: leaving the group no longer takes that back. What is taken back here, a group may give again.
 */
export async function setAdmin(ctx: Context, raw: SetAdminInput): Promise<UserView> {
  const { id, isAdmin } = parse(setAdminInput, raw);
  authorize(ctx.principal, "user.set-admin");
  return await inTransaction(ctx, async (tx) => {
    const row = await lockOther(tx, id, "change your own rights");
    const pinned = isAdmin && row.adminByGroup;
    if (row.isAdmin !== isAdmin || pinned) {
      if (isAdmin && row.isSample) throw new SluiceError("conflict", "The sample user cannot be an admin.");
      if (!isAdmin) {
        await refuseWithoutAdmin(tx, id);
        await endOpened(tx, id);
      }
      await tx.db.update(users).set({ isAdmin, adminByGroup: false }).where(eq(users.id, id));
      const before = { isAdmin: row.isAdmin, ...(row.adminByGroup && { byGroup: true }) };
      const detail = { before, after: { isAdmin } };
      await audit(tx, { action: "user.set-admin", subject: id, detail });
      await notify(tx.db, "people", id);
    }
    return await viewOf(tx, id);
  });
}
