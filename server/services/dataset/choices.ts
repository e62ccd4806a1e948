import { asc, sql } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { DatasetView } from "#server/contracts/dataset.ts";
import { datasets } from "#server/db/schema/index.ts";
import { visibleTo } from "./view.ts";

type Choice = Pick<DatasetView, "id" | "name" | "description" | "kind" | "writable" | "sizeBytes"> & {
  teamId: string | null;
};

/** What `list` has, as far as somebody who chooses one looks at it: who uses it is not counted. */
export async function choices(ctx: Context): Promise<Choice[]> {
  authorize(ctx.principal, "dataset.list");
  const { id, name, description, teamId, writable, sizeBytes, source } = datasets;
  return await ctx.db
    .select({ id, name, description, teamId, writable, sizeBytes, kind: sql<Choice["kind"]>`${source}->>'kind'` })
    .from(datasets)
    .where(visibleTo(ctx.principal))
    .orderBy(asc(name), asc(id));
}
