/** A full pool with a long queue in the database, made by a few statements. */
import { sql } from "drizzle-orm";
import { idOf } from "#scripts/demo/seed.ts";
import type { Database } from "#server/db/client.ts";
import { images, imageVersions } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";

export const QUEUED = 10_000;
const DEVICES = 1_000;
const SERVERS = 125;
const TEAMS = 100;
const PEOPLE = 1_000;
/** Nobody stops asking while the bench runs. */
const LATER = sql.raw("now() + interval '1 day'");

/**
 * 1,000 devices of eight to a server, three of four full and the rest with a tenth free, which nobody asks for; 10,000
 * requests of many shapes wait, each from a workspace of its own.
 */
export async function seedQueue(db: Database): Promise<void> {
  const [imageId, version] = [newId("img"), newId("imv")];
  await db.insert(images).values({ id: imageId, name: "cuda-python", title: "CUDA Python", description: "Sample." });
  await db.insert(imageVersions).values({
    ...{ id: version, imageId, version: "0123456789ab", state: "approved", spec: {}, buildState: "ready" },
  });
  const rows = (n: number) => sql.raw(`generate_series(1, ${n}) n`);
  const owner = sql.raw(
    `json_build_object('kind', 'kernel', 'pid', n, 'startTime', 1, 'label', 'train-' || n || '.ipynb')`,
  );
  await db.execute(sql`insert into teams (id, name) select ${idOf("team", "n")}, 'team-' || n from ${rows(TEAMS)}`);
  await db.execute(sql`insert into users (id, email, name) select ${idOf("usr", "n")}, 'user-' || n || '@example.org',
    'User ' || n from ${rows(PEOPLE)}`);
  await db.execute(sql`insert into quotas (team_id, gpu_type, guaranteed_milli, limit_milli, weight, priority)
    select ${idOf("team", "n")}, 'h200', 8000, 40000, 1 + n % 3, n % 2 from ${rows(TEAMS)}`);
  await db.execute(sql`insert into gpu_servers (id, name, public_key, state, last_seen_at)
    select ${idOf("gsv", "n")}, 'gpu-' || n, 'key-' || n, 'online', now() from ${rows(SERVERS)}`);
  await db.execute(sql`insert into gpus (id, server_id, uuid, name, gpu_type, model, compute_capability, memory_bytes, state,
      profile, link_group)
    select ${idOf("gpu", "n")}, ${idOf("gsv", `1 + n % ${SERVERS}`)}, 'GPU-' || n, 'h200-' || n, 'h200', 'NVIDIA H200', '9.0',
      140 * 1073741824::bigint, 'active', '{"driverVersion": 13000}', '0' from ${rows(DEVICES)}`);
  await db.execute(sql`insert into workspaces (id, name, owner_id, team_id, image_version_id, launcher, gpu_type, desired, observed)
    select ${idOf("ws", "n")}, 'workspace-' || n, ${idOf("usr", "1 + n % 1000")}, ${idOf("team", "1 + (n * 7) % 100")}, ${version},
      'local', 'h200', 'running', 'running' from ${rows(QUEUED)}`);
  const request =
    sql.raw(`lease_requests (id, workspace_id, team_id, user_id, idempotency_key, gpu_type, milli, memory_bytes,
    guaranteed_only, owner, state, created_at, last_polled_at, wait_until, max_devices)`);
  await db.execute(sql`insert into ${request}
    select ${idOf("req", "n")}, ${idOf("ws", "n")}, ${idOf("team", "1 + (n * 7) % 100")}, ${idOf("usr", "1 + n % 1000")},
      gen_random_uuid(), 'h200', greatest(1, milli), case when milli = 0 then (20 + n % 5 * 10) * 1073741824::bigint else 0 end,
      (n % 20 = 0)::int, ${owner}, 'queued', now() - (${QUEUED} - n) * interval '100 ms', ${LATER}, ${LATER}, 8
    from (select n, (array[250, 500, 1000, 500, 0, 333, 2000, 750, 125, 1000])[1 + n % 10] as milli from ${rows(QUEUED)}) each`);
  // Requests that were granted, two for each device.
  await db.execute(sql`insert into ${request}
    select ${idOf("req", "n + 100000")}, ${idOf("ws", "n")}, ${idOf("team", "1 + n % 100")}, ${idOf("usr", "1 + n % 1000")},
      gen_random_uuid(), 'h200', 500, 0, 0, ${owner}, 'granted', now() - interval '2 hours', now(), now(), 1
    from ${rows(2 * DEVICES)}`);
  await db.execute(sql`insert into leases (id, request_id, workspace_id, team_id, user_id, gpu_id, server_id, gpu_type, milli,
      memory_bytes, borrowed, owner, state, epoch, granted_at, claimed_at, owner_seen_at, expires_at, usage_at)
    select ${idOf("lea", "n")}, ${idOf("req", "n + 100000")}, ${idOf("ws", "n")}, ${idOf("team", "1 + n % 100")},
      ${idOf("usr", "1 + n % 1000")}, ${idOf("gpu", "1 + n % 1000")}, ${idOf("gsv", "1 + (1 + n % 1000) % 125")}, 'h200',
      case when n > 1000 and n % 4 = 0 then 400 else 500 end,
      case when n > 1000 and n % 4 = 0 then 56 else 70 end * 1073741824::bigint, (n % 3 = 0)::int, ${owner}, 'active', 1,
      now() - interval '1 hour', now() - interval '1 hour', now(), now() + (n % 240) * interval '1 minute', now()
    from ${rows(2 * DEVICES)}`);
  await db.execute(sql`analyze`);
}
