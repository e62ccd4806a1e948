import { sql } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type SetSizePolicyInput, type SizeList, setSizePolicyInput } from "#server/contracts/workspace-size.ts";
import { sizePolicy } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { list } from "./list.ts";
import { installationPolicy } from "./policy.ts";

/** Sets who may choose cores and memory freely where a team says nothing else, and how much. */
export async function setPolicy(ctx: Context, raw: SetSizePolicyInput): Promise<SizeList> {
  authorize(ctx.principal, "workspace-size.edit");
  const { version, ...set } = parse(setSizePolicyInput, raw);
  return await inTransaction(ctx, async (tx) => {
    // Two first edits at once would find no row to wait for.
    await tx.db.execute(sql`lock table size_policy in share row exclusive mode`);
    const before = await installationPolicy(tx);
    refuseStale(version, before, "who may choose sizes freely");
    await tx.db
      .insert(sizePolicy)
      .values(set)
      .onConflictDoUpdate({ target: sizePolicy.only, set: { ...set, version: sql`${sizePolicy.version} + 1` } });
    const detail = { before: before.version === 0 ? null : before, after: set };
    await audit(tx, { action: "workspace-size.set-policy", subject: "installation", detail });
    await notify(tx.db, "size", "policy");
    return await list(tx);
  });
}
