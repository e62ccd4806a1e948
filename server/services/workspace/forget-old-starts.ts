import { and, eq, lte } from "drizzle-orm";
import type { Database } from "#server/db/client.ts";
import { workspaceEvents } from "#server/db/schema/index.ts";

/** Starts of a workspace whose steps and lines are kept. */
export const KEPT_STARTS = 10;

/** Removes steps and lines of starts long past, as `generation` begins. */
export async function forgetOldStarts(db: Database, of: { workspaceId: string; generation: number }): Promise<void> {
  await db
    .delete(workspaceEvents)
    .where(
      and(
        eq(workspaceEvents.workspaceId, of.workspaceId),
        lte(workspaceEvents.generation, of.generation - KEPT_STARTS),
      ),
    );
}
