/** A large installation in the database: what a busy year leaves behind, made by a few statements. */
import { desc, sql } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import { imageVersions } from "#server/db/schema/index.ts";

export type Size = { servers: number; devices: number; teams: number; users: number; workspaces: number; days: number };
export const FULL: Size = { servers: 125, devices: 1000, teams: 25, users: 500, workspaces: 2000, days: 90 };

/** An id of the right form from a prefix and a number: base32 digits of its hash. */
export const idOf = (prefix: string, n: string) =>
  sql.raw(`'${prefix}-' || translate(substr(md5('${prefix}' || (${n})::text), 1, 26), '0189', 'xyzw')`);

/** A device's types, one after the other. */
const TYPES = "array['h200', 'a100', 'l40s', 'soft']";

/** What a team is guaranteed of a type, four fifths of the devices in all, and may hold at most. */
export function quotaOf({ devices, teams }: Size): { guaranteedMilli: number; limitMilli: number } {
  const guaranteedMilli = Math.floor((0.8 * 1000 * (devices / 4)) / teams / 250) * 250;
  return { guaranteedMilli, limitMilli: 5 * guaranteedMilli };
}

/**
 * Fills a database that holds nothing but its catalogue: servers, devices, teams, people, workspaces, and for each day
 * and device three leases with their requests and intervals, those on most devices still open, with samples of their
 * work; half the devices have been away for a day. Most of a type is held by all teams alike, the rest by a fifth of
 * them in turn, who borrow for that. Whoever holds something is in the team, works in a workspace of it, and keeps to
 * its limits. Hours are not rolled up yet: that is the broker's work. Nobody waits, and nothing computes at this moment:
 * see `alive.ts`.
 */
export async function seed(db: Database, size: Size): Promise<void> {
  // On one connection: what is worked out once lies in a table of its own.
  await db.transaction(async (tx) => await seedAll(tx, size));
}

async function seedAll(db: Transaction, size: Size): Promise<void> {
  const [newest] = await db
    .select({ id: imageVersions.id })
    .from(imageVersions)
    .orderBy(desc(imageVersions.id))
    .limit(1);
  if (newest === undefined) throw new Error("The catalogue is empty: prepare it first.");
  const rows = (n: number) => sql.raw(`generate_series(1, ${n}) n`);
  const type = sql.raw(`(${TYPES})[1 + n % 4]`);
  const { guaranteedMilli, limitMilli } = quotaOf(size);
  await db.execute(
    sql`insert into teams (id, name) select ${idOf("team", "n")}, 'team-' || n from ${rows(size.teams)}`,
  );
  await db.execute(sql`insert into users (id, email, name) select ${idOf("usr", "n")}, 'user-' || n || '@example.org',
    'User ' || n from ${rows(size.users)}`);
  await db.execute(sql`insert into memberships (team_id, user_id, role)
    select ${idOf("team", `1 + n % ${size.teams}`)}, ${idOf("usr", "n")}, case when n <= ${size.teams} then 'lead' else 'member' end
    from ${rows(size.users)}`);
  await db.execute(sql`insert into quotas (team_id, gpu_type, guaranteed_milli, limit_milli)
    select ${idOf("team", "t")}, gpu_type, ${guaranteedMilli}, ${limitMilli}
    from generate_series(1, ${size.teams}::int) t, unnest(${sql.raw(TYPES)}) gpu_type`);
  await db.execute(sql`insert into gpu_prices (gpu_type, basis, micro, changed_at)
    select gpu_type, 'hour', 2150000, now() from unnest(array['h200', 'a100', 'l40s']) gpu_type`);
  await db.execute(sql`insert into gpu_servers (id, name, public_key, state, last_seen_at)
    select ${idOf("gsv", "n")}, 'gpu-' || n, 'key-' || n, 'online', now() from ${rows(size.servers)}`);
  await db.execute(sql`insert into gpus (id, server_id, uuid, name, gpu_type, model, compute_capability, memory_bytes, state, profile)
    select ${idOf("gpu", "n")}, ${idOf("gsv", `1 + n % ${size.servers}`)}, 'GPU-' || n, ${type} || '-' || n, ${type}, 'Model',
      '9.0', 80 * 1073741824::bigint, 'active', '{}' from ${rows(size.devices)}`);
  await db.execute(sql`insert into workspaces (id, name, owner_id, team_id, image_version_id, launcher, gpu_type, desired,
      observed, started_at, last_activity_at, cpu_milli, memory_bytes)
    select ${idOf("ws", "n")}, 'workspace-' || n, ${idOf("usr", `1 + n % ${size.users}`)},
      ${idOf("team", `1 + (1 + n % ${size.users}) % ${size.teams}`)}, ${newest.id}, 'local', ${type},
      case when n % 3 = 0 then 'stopped' else 'running' end, case when n % 3 = 0 then 'stopped' else 'running' end,
      now() - interval '5 hours', now() - (n % 400) * interval '1 minute', n % 4000, (n % 64) * 268435456::bigint
    from ${rows(size.workspaces)}`);
  await db.execute(sql`insert into workspace_samples (workspace_id, at, cpu_milli, memory_bytes)
    select ${idOf("ws", "n")}, now() - m * interval '30 seconds', (n * m) % 4000, (n % 64) * 268435456::bigint
    from ${rows(Math.min(50, size.workspaces))}, generate_series(1, 2880) m`);
  // What those that run were started by: in a few seconds each.
  await db.execute(sql`insert into workspace_events (workspace_id, generation, at, kind, step, message)
    select id, generation, started_at + after * interval '1 second' - (4 + (hashtext(id) & 7)) * interval '1 second',
      kind, 'kernel', told
    from workspaces, (values (0, 'step-started', 'Starting a first notebook kernel'),
      (2, 'step-done', 'A notebook kernel computed 6 * 7')) step (after, kind, told)
    where desired = 'running'`);
  await db.execute(sql`insert into device_intervals (gpu_id, state, started_at, ended_at)
    select ${idOf("gpu", "n")}, state, now() - ${size.days} * interval '1 day' + f * interval '1 day',
      case when t is null then null else now() - ${size.days} * interval '1 day' + t * interval '1 day' end
    from ${rows(size.devices)}, (values ('open', 0.0, 30.0, 1), ('lost', 30.0, 30.4, 1), ('draining', 30.4, 31.0, 1),
      ('open', 31.0, null, 1), ('open', 0.0, null, 0)) p (state, f, t, odd)
    where odd = n % 2`);
  // Workspaces of each team in a row, all of them and those that run.
  await db.execute(sql`create temporary table homes as
    select w.id, w.owner_id, w.team_id, r.running, row_number() over (partition by w.team_id, r.running order by w.id) - 1 as i,
      count(*) over (partition by w.team_id, r.running)::int as many
    from workspaces w, (values (true), (false)) r (running) where w.desired = 'running' or not r.running`);
  // One row for each device, day and third of a day, `slot` by `slot`; `k` numbers them, and `chance` follows from it.
  // The newest begin in the fourth hour before now and end two to seven hours later: more than half of them last.
  const perType = Math.ceil(size.devices / 4);
  const fifth = Math.max(1, Math.floor(size.teams / 5));
  const alike = Math.floor(perType * 0.8);
  const begun = sql.raw(`now() - ${size.days} * interval '1 day' + slot * interval '8 hours' + interval '4 hours'`);
  await db.execute(sql`create temporary table seeded as
    with each as (
      select n, n / 4 as m, slot, k, hashint4(k)::bigint & 1048575 as chance,
        ${begun} + (k % 60) * interval '1 minute' as s,
        ${begun} + interval '2 hours' + (hashint4(k)::bigint & 1048575) % 300 * interval '1 minute' as e
      from (select n, slot, n * ${size.days * 3}::int + slot as k
        from ${rows(size.devices)}, generate_series(0, ${size.days * 3 - 1}::int) slot) numbered
      -- What was away for a day had nobody on it.
      where n % 2 = 0 or slot not between 89 and 92),
    placed as (
      select each.*, 250 * (1 + chance % 4)::int as milli, ${type} as gpu_type, ${idOf("gpu", "n")} as gpu,
        ${idOf("gsv", `1 + n % ${size.servers}`)} as server,
        (case when m < ${alike}::int then (m + slot) % ${size.teams}::int
          else m % ${fifth}::int + slot / 3 % ${Math.floor(size.teams / fifth)}::int * ${fifth}::int end) as team
      from each)
    select n, k, chance, s, e, milli, gpu_type, gpu, server, ${idOf("req", "k")} as request, ${idOf("lea", "k")} as lease,
      h.id as workspace, h.team_id, h.owner_id,
      -- In per cent of its time the GPU works, for some hardly ever.
      (case when chance % 9 = 0 then chance % 10 else 20 + chance % 80 end)::int as busy,
      -- In per cent of that its multiprocessors; a type's devices count it, another's estimate it at most, and those of
      -- some servers do not tell it.
      (case when gpu_type = 'a100' then 90 + chance % 11 else 15 + chance / 128 % 80 end)::int as active,
      (case when gpu_type = 'l40s' and n % 3 = 0 then 0 else 1 end)::int as told, (gpu_type = 'a100')::int as estimated,
      (sum(milli) over (partition by slot, gpu_type, team order by n) > ${guaranteedMilli}::int)::int as borrowed
    from placed join homes h on h.team_id = ${idOf("team", "1 + team")} and h.running = (e >= now())
      and h.i = (chance / 7) % h.many`);
  await db.execute(sql`insert into lease_requests (id, workspace_id, team_id, user_id, idempotency_key, gpu_type, milli,
      memory_bytes, owner, state, created_at, decided_at, last_polled_at, wait_until)
    select request, workspace, team_id, owner_id, request, gpu_type, milli, 1073741824, '{"kind":"process","pid":1,"startTime":1}',
      'granted', s - (k % 600) * interval '1 second', s, s, s
    from seeded`);
  await db.execute(sql`insert into leases (id, request_id, workspace_id, team_id, user_id, gpu_id, server_id, gpu_type, milli,
      memory_bytes, borrowed, owner, state, epoch, granted_at, claimed_at, owner_seen_at, expires_at, ended_at, end_reason,
      gpu_time_us, sm_active_us, sm_known_us, sm_estimated_us, promised_us, delivered_us)
    select lease, request, workspace, team_id, owner_id, gpu, server, gpu_type, milli, milli * 85899345::bigint, borrowed,
      '{"kind":"kernel","pid":1,"startTime":1,"label":"train.ipynb"}', case when e < now() then 'ended' else 'active' end, 1,
      s, s, least(e, now()), e + interval '1 hour', case when e < now() then e end,
      case when e < now() then 'given back' end,
      (seconds * 10000 * busy)::bigint, (seconds * 100 * busy * active * told)::bigint, (seconds * 10000 * busy * told)::bigint,
      (seconds * 100 * busy * active * told * estimated)::bigint, (k % 7) * 1000000000::bigint,
      (k % 7) * 960000000::bigint
    from (select *, extract(epoch from least(e, now()) - s) as seconds from seeded where s < now()) begun`);
  await db.execute(sql`insert into lease_intervals (lease_id, team_id, user_id, gpu_id, gpu_type, milli, started_at, ended_at)
    select lease, team_id, owner_id, gpu, gpu_type, milli, s, case when e < now() then e end
    from seeded where s < now()`);
  // One sample an hour of each lease: what the seconds between would add up to all the same.
  await db.execute(sql`insert into usage_samples (lease_id, at, memory_bytes, gpu_time_us, sm_active_us, sm_known_us, sm_estimated_us,
      delivered_us, promised_us, calls)
    select lease, h, 1073741824, busy * 36000000::bigint, busy * active * told * 360000::bigint, busy * told * 36000000::bigint,
      busy * active * told * estimated * 360000::bigint, (k % 7) * 200000000::bigint, (k % 7) * 210000000::bigint, 1000
    from seeded, generate_series(s + interval '1 minute', least(e, now()), interval '1 hour') h`);
  await db.execute(sql`insert into lease_work (lease_id, hour, gpu_time_us, sm_active_us, sm_known_us, sm_estimated_us, delivered_us,
      promised_us)
    select lease_id, date_bin('1 hour', at, timestamptz 'epoch'), sum(gpu_time_us), sum(sm_active_us), sum(sm_known_us),
      sum(sm_estimated_us), sum(delivered_us), sum(promised_us)
    from usage_samples group by 1, 2`);
  await db.execute(sql`drop table seeded, homes`);
  // What fitted nobody while somebody waited: by the minute for two days, by the hour before, and nothing at night.
  await db.execute(sql`insert into stranded_hours (at, gpu_type, stranded, until)
    select at, gpu_type, case when date_part('hour', at) between 7 and 18
        then (1 + (hashtext(gpu_type || date_trunc('hour', at)) & 7)) * 500 * round(date_part('epoch', step) * 1000000)::bigint
        else 0 end, at + step
    from unnest(${sql.raw(TYPES)}) gpu_type, (
      select at, interval '1 hour' as step from generate_series(date_trunc('hour', now()) - ${size.days} * interval '1 day',
        date_trunc('hour', now()) - interval '49 hours', interval '1 hour') at
      union all
      select at, interval '1 minute' from generate_series(date_trunc('hour', now()) - interval '48 hours',
        now() - interval '1 minute', interval '1 minute') at) looks`);
  await db.execute(sql`analyze`);
}
