import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type AddSizeInput, addSizeInput, type SizeList } from "#server/contracts/workspace-size.ts";
import { workspaceSizes } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { list } from "./list.ts";
import { prepareDefault, refuseTaken, refuseUnknownTeams } from "./write.ts";

/** Offers another size. */
export async function add(ctx: Context, raw: AddSizeInput): Promise<SizeList> {
  authorize(ctx.principal, "workspace-size.edit");
  const input = parse(addSizeInput, raw);
  return await refuseTaken(input.name, () =>
    inTransaction(ctx, async (tx) => {
      await refuseUnknownTeams(tx, input.teamIds);
      await prepareDefault(tx, input);
      const id = newId("siz");
      await tx.db.insert(workspaceSizes).values({ id, ...input, createdAt: tx.now() });
      await audit(tx, { action: "workspace-size.add", subject: id, detail: input });
      await notify(tx.db, "size", id);
      return await list(tx);
    }),
  );
}
