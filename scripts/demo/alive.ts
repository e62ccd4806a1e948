/** What a pool at work has and rows alone do not: leases that compute at this moment, and people who wait. */
import { sql } from "drizzle-orm";
import type { Database } from "#server/db/client.ts";
import { notify } from "#server/live.ts";
import { idOf } from "./seed.ts";

/** Of each GPU type so many teams are at their limit, and so many of their people wait for more. */
const FULL_TEAMS = 3;
const WAITING_EACH = 4;

/** Lets people wait: the teams that hold the most of each type may hold no more, and some of their workspaces ask. */
export async function letWait(db: Database): Promise<void> {
  await db.execute(sql`
    with held as (
      select team_id, gpu_type, sum(milli)::int as milli,
        row_number() over (partition by gpu_type order by sum(milli) desc, team_id) as place
      from leases where state = 'active' group by 1, 2
    ), full_teams as (
      update quotas q set limit_milli = h.milli, guaranteed_milli = least(q.guaranteed_milli, h.milli)
      from held h where h.place <= ${FULL_TEAMS}::int and h.milli >= 1000 and q.team_id = h.team_id and q.gpu_type = h.gpu_type
      returning q.team_id, q.gpu_type
    ), asking as (
      select w.id, w.team_id, w.owner_id, f.gpu_type,
        row_number() over (partition by f.gpu_type, w.team_id order by md5(w.id || f.gpu_type)) as n
      from workspaces w join full_teams f on f.team_id = w.team_id where w.desired = 'running'
    )
    insert into lease_requests (id, workspace_id, team_id, user_id, idempotency_key, gpu_type, milli, memory_bytes, owner, state,
      created_at, last_polled_at, wait_until)
    select ${idOf("req", "'waits' || id || gpu_type")}, id, team_id, owner_id, 'waits-' || gpu_type, gpu_type,
      250 * (1 + (hashtext(id) & 3)), 0, '{"kind":"kernel","pid":1,"startTime":1,"label":"train.ipynb"}', 'queued',
      now() - (hashtext(id || gpu_type) & 1023) * interval '2 seconds', now(), now() + interval '1 day'
    from asking where n <= ${WAITING_EACH}::int`);
}

/**
 * Lets what is held work for the time since the last call, but for a sixth of it, and stay held: with samples as gpud
 * sends them, of which those that no page shows any more are removed.
 */
export async function letWork(db: Database, seconds: number): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.execute(sql`
      with now_working as (
        select id, work, sm_known, sm_active, case when sm_estimated_us > 0 then sm_active else 0 end as sm_estimated
        from (
          select *, case when sm_known_us > 0 then work else 0 end as sm_known,
            case when sm_known_us > 0 then work / 100 * (15 + (hashtext(id) >> 6 & 63)) else 0 end as sm_active
          from (
            select *, ${seconds}::int * milli * 10::bigint * (20 + (hashtext(id) & 63)) as work from leases
            where state = 'active' and hashtext(id) % 6 <> 0
          ) working
        ) told
      ), worked as (
        update leases l set usage_at = now(), expires_at = greatest(expires_at, now() + interval '40 minutes'),
          used_memory_bytes = memory_bytes / 128 * (24 + (hashtext(l.id) & 63)), gpu_time_us = gpu_time_us + work,
          sm_active_us = sm_active_us + sm_active, sm_known_us = sm_known_us + sm_known,
          sm_estimated_us = sm_estimated_us + sm_estimated
        from now_working w where w.id = l.id
        returning l.id, used_memory_bytes, work, sm_active, sm_known, sm_estimated
      ), sampled as (
        insert into usage_samples (lease_id, at, memory_bytes, gpu_time_us, sm_active_us, sm_known_us, sm_estimated_us,
          delivered_us, promised_us, calls)
        select id, now(), used_memory_bytes, work, sm_active, sm_known, sm_estimated, 0, 0, 0 from worked
      )
      insert into lease_work (lease_id, hour, gpu_time_us, sm_active_us, sm_known_us, sm_estimated_us, delivered_us, promised_us)
      select id, date_trunc('hour', now(), 'UTC'), work, sm_active, sm_known, sm_estimated, 0, 0 from worked
      on conflict (lease_id, hour) do update set gpu_time_us = lease_work.gpu_time_us + excluded.gpu_time_us,
        sm_active_us = lease_work.sm_active_us + excluded.sm_active_us,
        sm_known_us = lease_work.sm_known_us + excluded.sm_known_us,
        sm_estimated_us = lease_work.sm_estimated_us + excluded.sm_estimated_us`);
    await tx.execute(sql`delete from usage_samples where calls = 0 and at < now() - interval '2 minutes'`);
    await notify(tx, "pool", "sample");
  });
}
