import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type IdentityGroupList,
  type RemoveIdentityGroupInput,
  removeIdentityGroupInput,
} from "#server/contracts/identity-group.ts";
import { identityGroups } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { list } from "./list.ts";

/** Ends what a group gives; whoever has it loses it at the next sign-in. */
export async function remove(ctx: Context, raw: RemoveIdentityGroupInput): Promise<IdentityGroupList> {
  authorize(ctx.principal, "identity-group.remove");
  const { id } = parse(removeIdentityGroupInput, raw);
  return await inTransaction(ctx, async (tx) => {
    const [gone] = await tx.db.delete(identityGroups).where(eq(identityGroups.id, id)).returning();
    if (gone === undefined) throw new SluiceError("not-found", "There is no such group. Reload the page.");
    const { name, role, teamId } = gone;
    const before = { name, role };
    await audit(tx, { action: "identity-group.remove", subject: id, ...(teamId && { teamId }), detail: { before } });
    await notify(tx.db, "people", id);
    return await list(tx);
  });
}
