import { sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";

/** As many of the latest starts of an environment are looked at. */
const STARTS = 20;

/**
 * How long the latest starts of environments took, the median in seconds, by the environment's id: from a start's first
 * step to the answer of its first kernel, without the building of an environment, which the first one alone waits for.
 * Of each workspace the last start that went well counts.
 */
export async function startTimes(ctx: Context): Promise<Map<string, number>> {
  const rows = await ctx.db.execute<{ image: string; seconds: number }>(sql`
    select image, percentile_cont(0.5) within group (order by seconds)::float8 as seconds from (
      select w.image, extract(epoch from w.started_at - began.at - began.building) as seconds
      from (
        -- The latest of each version by an index, and of these the latest of the environment.
        select v.image_id as image, w.id, w.generation, w.started_at,
          row_number() over (partition by v.image_id order by w.started_at desc) as latest
        from image_versions v cross join lateral (
          select id, generation, started_at from workspaces
          where image_version_id = v.id and started_at is not null and observed in ('running', 'stopping', 'stopped')
            and desired <> 'removed'
          order by started_at desc limit ${STARTS}
        ) w
      ) w
      cross join lateral (
        select min(e.at) as at, coalesce(
          max(e.at) filter (where e.step = 'environment' and e.kind = 'step-done')
            - min(e.at) filter (where e.step = 'environment'), interval '0') as building
        from workspace_events e
        where e.workspace_id = w.id and e.generation = w.generation and e.kind in ('step-started', 'step-done')
      ) began
      where w.latest <= ${STARTS} and began.at < w.started_at
    ) starts
    group by image`);
  return new Map(rows.map(({ image, seconds }) => [image, seconds]));
}
