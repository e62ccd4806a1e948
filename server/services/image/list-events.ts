import { and, asc, eq, gt } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import {
  type ImageVersionEventList,
  type ImageVersionEventsInput,
  imageVersionEventList,
  imageVersionEventsInput,
} from "#server/contracts/image.ts";
import { imageVersionEvents } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { loadVersion } from "./load.ts";

/** Steps and log lines of the checks of a version, oldest first, after a sequence number. */
export async function listEvents(ctx: Context, raw: ImageVersionEventsInput): Promise<ImageVersionEventList> {
  const { id, after, limit } = parse(imageVersionEventsInput, raw);
  await loadVersion(ctx, id);
  const rows = await ctx.db
    .select()
    .from(imageVersionEvents)
    .where(and(eq(imageVersionEvents.versionId, id), gt(imageVersionEvents.seq, after)))
    .orderBy(asc(imageVersionEvents.seq))
    .limit(limit);
  const events = rows.map(({ versionId: _, ...row }) => ({ ...row, at: row.at.toISOString() }));
  return imageVersionEventList.parse({ events });
}
