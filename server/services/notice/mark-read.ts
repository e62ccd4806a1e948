import { and, eq, inArray, isNull } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { type MarkNoticesReadInput, markNoticesReadInput, type NoticePage } from "#server/contracts/notice.ts";
import { notices } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { list, reader } from "./list.ts";

/** Marks one's own notices as read: these, or all. Ids that are not one's own are passed over. */
export async function markRead(ctx: Context, raw: MarkNoticesReadInput = {}): Promise<NoticePage> {
  authorize(ctx.principal, "notice.mark-read");
  const { ids } = parse(markNoticesReadInput, raw);
  const userId = reader(ctx);
  return await inTransaction(ctx, async (tx) => {
    const which = ids === undefined ? undefined : inArray(notices.id, ids);
    const marked = await tx.db
      .update(notices)
      .set({ readAt: tx.now() })
      .where(and(eq(notices.userId, userId), isNull(notices.readAt), which))
      .returning({ id: notices.id });
    // Other windows of the same person.
    if (marked.length > 0) await notify(tx.db, "notice", userId);
    return await list(tx);
  });
}
