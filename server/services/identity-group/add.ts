import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type AddIdentityGroupInput,
  addIdentityGroupInput,
  type IdentityGroupList,
} from "#server/contracts/identity-group.ts";
import { identityGroups } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { get } from "#server/services/team/get.ts";
import { list } from "./list.ts";

/** Lets a group give a role in a team, or an admin's rights; it counts for each of its people at their next sign-in. */
export async function add(ctx: Context, raw: AddIdentityGroupInput): Promise<IdentityGroupList> {
  authorize(ctx.principal, "identity-group.add");
  const input = parse(addIdentityGroupInput, raw);
  const teamId = "teamId" in input ? input.teamId : null;
  return await inTransaction(ctx, async (tx) => {
    if (teamId !== null) await get(tx, { id: teamId });
    const { name, role } = input;
    const [row] = await tx.db
      .insert(identityGroups)
      .values({ id: newId("igr"), name, teamId, role, createdAt: tx.now() })
      .onConflictDoUpdate({
        target: [identityGroups.name, identityGroups.teamId],
        set: { role },
      })
      .returning({ id: identityGroups.id });
    const subject = row?.id ?? name;
    await audit(tx, { action: "identity-group.add", subject, ...(teamId && { teamId }), detail: { name, role } });
    await notify(tx.db, "people", subject);
    return await list(tx);
  });
}
