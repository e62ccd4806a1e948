/** What an installation that is in use has besides its ledger: a queue, an audit, notices, datasets, a what-if. */
import { count, eq, type SQL, sql } from "drizzle-orm";
import { idOf } from "#scripts/demo/seed.ts";
import type { WhatIfResult, WhatIfView } from "#server/contracts/what-if.ts";
import type { Database } from "#server/db/client.ts";
import { gpus, teams, whatIfs } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";
import { judged } from "#server/scheduler/queue.ts";
import { knownGpuTypes, loadWorld } from "#server/services/lease/world.ts";
import { makePerson, type Person } from "#server/services/testing.ts";

const QUEUED = 200;
const AUDITED = 50_000;
const NOTICES = 200;
const DATASETS = 60;

/** Who asks for the pages: an admin who leads a team, has workspaces in it, and waits for a GPU. */
export async function makeAsker(db: Database): Promise<Person> {
  const [team] = await db.select().from(teams).where(eq(teams.name, "team-1"));
  if (team === undefined) throw new Error("Seed the database first.");
  const asker = await makePerson(db, { name: "Ada", isAdmin: true, teams: { [team.id]: "lead" } });
  await db.execute(sql`insert into workspaces (id, name, owner_id, team_id, image_version_id, launcher, gpu_type, desired,
      observed, started_at, last_activity_at)
    select ${idOf("ws", "'mine-' || n")}, 'mine-' || n, ${asker.id}, ${team.id}, seeded.image_version_id, 'local', 'h200',
      'running', 'running', now() - interval '5 hours', now()
    from generate_series(1, 20) n, (select image_version_id from workspaces limit 1) seeded`);
  return asker;
}

/** Fills in what the seed leaves out. */
export async function makeBusy(db: Database, asker: Person): Promise<{ whatIf: string }> {
  await fillQueue(db, asker);
  await db.execute(sql`insert into audit_events (at, actor_kind, actor_id, action, subject, team_id, detail, address)
    select now() - n * interval '2 minutes', 'user', w.owner_id,
      (array['workspace.create', 'workspace.start', 'workspace.stop', 'lease.end', 'team.set-quota'])[1 + n % 5],
      w.id, w.team_id, jsonb_build_object('name', w.name, 'milli', n % 1000), '192.0.2.' || n % 256
    from generate_series(1, ${AUDITED}::int) n
    join (select *, row_number() over (order by id) as k, count(*) over () as many from workspaces) w on w.k = 1 + n % w.many`);
  await db.execute(sql`insert into notices (id, user_id, kind, key, title, body, href, created_at, read_at)
    select ${idOf("ntc", "n")}, ${asker.id}, 'granted', 'seeded-' || n, 'Your GPU is there', 'Half an h200 for train.ipynb.',
      '/gpus', now() - n * interval '1 hour', case when n > 20 then now() end
    from generate_series(1, ${NOTICES}::int) n`);
  await db.execute(sql`insert into datasets (id, name, description, team_id, source, size_bytes, file_count, measured_at, registered_by)
    select ${idOf("dst", "n")}, 'dataset-' || n, 'Images of the year.', case when n % 3 > 0 then t.id end,
      jsonb_build_object('kind', 'nfs', 'server', 'nfs.example.org', 'path', '/data/' || n), n * 1073741824::bigint, n * 1000,
      now(), ${asker.id}
    from generate_series(1, ${DATASETS}::int) n
    join (select id, row_number() over (order by id) as k, count(*) over () as many from teams) t on t.k = 1 + n % t.many`);
  await db.execute(sql`insert into workspace_datasets (workspace_id, dataset_id)
    select w.id, d.id from workspaces w join datasets d on d.team_id is null or d.team_id = w.team_id`);
  return { whatIf: await insertWhatIf(db, asker) };
}

/** A GPU each: those who come first get what is free, as the broker would have given it to them, the others wait. */
async function fillQueue(db: Database, asker: Person): Promise<void> {
  const gpuTypes = await knownGpuTypes(db);
  const perType = Math.ceil(QUEUED / gpuTypes.length);
  const [{ devices } = { devices: 0 }] = await db.select({ devices: count() }).from(gpus);
  await db.execute(askedBy(sql`desired = 'running' and owner_id <> ${asker.id}`, gpuTypes, devices));
  for (const gpuType of gpuTypes) {
    const { verdicts } = judged(await loadWorld(db, gpuType, new Date()));
    const granted = verdicts.flatMap((verdict) => (verdict.state === "granted" ? [verdict] : []));
    const pieces = granted.flatMap(({ requestId, placement }) =>
      placement.pieces.map(({ gpuId }) => ({ requestId, gpuId, borrowed: placement.borrowed ? 1 : 0 })),
    );
    const waiting = verdicts.flatMap((verdict) => (verdict.state === "queued" ? [verdict.requestId] : []));
    await db.execute(sql`delete from lease_requests where state = 'queued' and gpu_type = ${gpuType}
      and not id = any(${sql.param([...granted.map(({ requestId }) => requestId), ...waiting.slice(0, perType)])}::text[])`);
    await db.execute(sql`insert into leases (id, request_id, workspace_id, team_id, user_id, gpu_id, server_id, gpu_type, milli,
        memory_bytes, borrowed, owner, state, epoch, granted_at, claimed_at, owner_seen_at, expires_at)
      select ${idOf("lea", "r.id")}, r.id, r.workspace_id, r.team_id, r.user_id, g.id, g.server_id, r.gpu_type, r.milli,
        r.memory_bytes, p.borrowed, r.owner, 'active', 1, now(), now(), now(), now() + interval '4 hours'
      from json_to_recordset(${JSON.stringify(pieces)}::json) p ("requestId" text, "gpuId" text, borrowed int)
      join lease_requests r on r.id = p."requestId" join gpus g on g.id = p."gpuId"`);
  }
  await db.execute(sql`insert into lease_intervals (lease_id, team_id, user_id, gpu_id, gpu_type, milli, started_at)
    select l.id, l.team_id, l.user_id, l.gpu_id, l.gpu_type, l.milli, l.granted_at
    from leases l join lease_requests r on r.id = l.request_id where r.state = 'queued'`);
  await db.execute(sql`update lease_requests r set state = 'granted', decided_at = now()
    where state = 'queued' and exists (select 1 from leases l where l.request_id = r.id)`);
  await db.execute(askedBy(sql`owner_id = ${asker.id}`, gpuTypes, 2));
}

/** So many workspaces of these, or as many as there are, ask for a GPU of each type, a minute after each other. */
const askedBy = (whose: SQL, gpuTypes: string[], many: number) => sql`
  insert into lease_requests (id, workspace_id, team_id, user_id, idempotency_key, gpu_type, milli, memory_bytes, owner, state,
    created_at, last_polled_at, wait_until)
  select ${idOf("req", "w.id || t")}, w.id, w.team_id, w.owner_id, 'waits-' || t, t, 1000, 1073741824,
    '{"kind":"kernel","pid":1,"startTime":1,"label":"train.ipynb"}', 'queued', now() - (1 + w.k % 90) * interval '1 minute',
    now(), now() + interval '1 day'
  from (select *, row_number() over (order by md5(id)) as k from workspaces where ${whose}) w,
    unnest(${sql.param(gpuTypes)}::text[]) t
  where w.k <= ${many}::int`;

async function insertWhatIf(db: Database, asker: Person): Promise<string> {
  const all = await db.select({ teamId: teams.id, name: teams.name }).from(teams);
  const [to, day] = [Math.floor(Date.now() / 86_400_000) * 86_400_000, 86_400_000];
  const waits = { waitP50: 30, waitP95: 900, waitP99: 3600 };
  const counts = { granted: 1000, gaveUp: 10, refused: 1 };
  const outcome = {
    ...{ gpus: 250, ...waits, ...counts, reclaimed: 4, heldHours: 9000, utilisation: 0.7 },
    ...{ fairness: 0.9, cents: 12_345_600, centsPerHeldHour: 215 },
  };
  const ofTeam = { guaranteedMilli: 8000, limitMilli: 40_000, ...waits, ...counts, heldHours: 400 };
  const instant = (at: number) => new Date(at).toISOString();
  const gpuTypes = await knownGpuTypes(db);
  const types = gpuTypes.map((gpuType) => ({
    ...{ gpuType, logged: outcome, now: outcome, proposed: outcome },
    teams: all.map((team) => ({ ...team, now: ofTeam, proposed: ofTeam })),
    bins: Array.from({ length: 84 }, (_, at) => ({
      ...{ from: instant(to - 14 * day + at * 14_400_000), to: instant(to - 14 * day + (at + 1) * 14_400_000) },
      ...{ now: { held: 170 + (at % 9), waiting: at % 30 }, proposed: { held: 190 + (at % 7), waiting: at % 5 } },
    })),
    assumed: { asked: 1011, carried: 20, retries: 3, lengthGuessed: 40 },
  }));
  const question: WhatIfView["question"] = {
    from: instant(to - 14 * day),
    to: instant(to),
    types: gpuTypes.map((gpuType) => ({ gpuType, gpus: 300, quotas: [] })),
  };
  const result: WhatIfResult = { currency: "EUR", types };
  const id = newId("wif");
  await db.insert(whatIfs).values({
    ...{ id, key: id, question, result, state: "done", progress: 1, aliveAt: new Date(), askedBy: asker.id },
  });
  return id;
}
