/** The sample data hold together: nobody has what the rules would not have given, and everybody works. */
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { systemContext } from "#server/context.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { map } from "#server/services/gpu-server/map.ts";
import { queue } from "#server/services/gpu-server/queue.ts";
import { prepare } from "#server/services/setup/prepare.ts";
import { letWait, letWork } from "./alive.ts";
import { FULL, quotaOf, type Size, seed } from "./seed.ts";

const SMALL: Size = { servers: 10, devices: 100, teams: 10, users: 60, workspaces: 240, days: 40 };

let database: TestDatabase;
beforeAll(async () => {
  database = await useTestDatabase();
  await prepare(systemContext(database.db));
  await seed(database.db, SMALL);
}, 120_000);
afterAll(async () => await database.drop());

const rows = async (query: ReturnType<typeof sql>) => [...(await database.db.execute(query))];

/** The most that was held at any moment, by what the rows are told apart by. */
const most = (by: string, of: string) => sql`
  select ${sql.raw(by)}, max(held)::int as held from (
    select ${sql.raw(by)}, sum(change) over (partition by ${sql.raw(by)} order by at, change) as held from (
      select i.*, l.borrowed, i.started_at as at, i.milli as change from lease_intervals i join leases l on l.id = i.lease_id
      union all
      select i.*, l.borrowed, i.ended_at, -i.milli from lease_intervals i join leases l on l.id = i.lease_id
      where i.ended_at is not null) changes
    where ${sql.raw(of)}) sums
  group by ${sql.raw(by)}`;

it("keeps every team within its limit at every moment, and within its guarantee with what is not borrowed", async () => {
  const { guaranteedMilli, limitMilli } = quotaOf(SMALL);
  const held = await rows(most("team_id, gpu_type", "true"));
  expect(held).toHaveLength(SMALL.teams * 4);
  for (const row of held) expect(row.held).toBeLessThanOrEqual(limitMilli);
  const inside = await rows(most("team_id, gpu_type", "borrowed = 0"));
  for (const row of inside) expect(row.held).toBeLessThanOrEqual(guaranteedMilli);
  // Some borrow, so that pages have something to show.
  expect(held.some((row) => Number(row.held) > guaranteedMilli)).toBe(true);
});

it("guarantees no more than there is, here and in the installation that is shown", async () => {
  for (const size of [SMALL, FULL]) {
    const { guaranteedMilli } = quotaOf(size);
    expect(guaranteedMilli).toBeGreaterThan(0);
    expect(guaranteedMilli * size.teams).toBeLessThanOrEqual((size.devices / 4) * 1000);
  }
  for (const row of await rows(most("gpu_id", "true"))) expect(row.held).toBeLessThanOrEqual(1000);
});

it("lets people hold what is of their team, in workspaces of theirs that run, on devices that are there", async () => {
  const wrong = await rows(sql`select l.id from leases l join workspaces w on w.id = l.workspace_id
    left join memberships m on m.user_id = l.user_id and m.team_id = l.team_id
    where w.owner_id <> l.user_id or w.team_id <> l.team_id or m.user_id is null
      or (l.state <> 'ended' and w.desired <> 'running')`);
  expect(wrong).toEqual([]);
  const away = await rows(sql`select i.lease_id from lease_intervals i join device_intervals d on d.gpu_id = i.gpu_id
    where d.state <> 'open' and i.started_at < d.ended_at and coalesce(i.ended_at, now()) > d.started_at`);
  expect(away).toEqual([]);
  expect(await rows(sql`select 1 as open from leases where state <> 'ended' limit 1`)).toHaveLength(1);
});

it("has everybody compute, and some let their GPU idle", async () => {
  const shares = await rows(sql`select u.id, coalesce(sum(l.gpu_time_us) / nullif(sum(extract(epoch from
      least(coalesce(l.ended_at, now()), now()) - l.granted_at) * 1000000), 0), 0)::float8 as share
    from users u left join leases l on l.user_id = u.id group by u.id`);
  expect(shares).toHaveLength(SMALL.users);
  for (const { share } of shares) {
    expect(share).toBeGreaterThan(0.2);
    expect(share).toBeLessThan(0.95);
  }
  const [idle] = await rows(sql`select count(*)::int as n from leases
    where gpu_time_us < 0.1 * extract(epoch from least(coalesce(ended_at, now()), now()) - granted_at) * 1000000`);
  expect(idle?.n).toBeGreaterThan(100);
});

it("is a pool at work once it is let: most of what is held computes, and some wait for a reason", async () => {
  const ctx = systemContext(database.db);
  const sum = async (key: "idleHeldMilli" | "leasedMilli" | "usedMemoryBytes" | "leasedMemoryBytes" | "queued") =>
    (await map(ctx)).totals.reduce((all, total) => all + total[key], 0);
  expect(await sum("idleHeldMilli")).toBe(await sum("leasedMilli"));
  await letWait(database.db);
  for (let time = 0; time < 2; time++) await letWork(database.db, 15);
  expect(await sum("idleHeldMilli")).toBeGreaterThan(0);
  expect(await sum("idleHeldMilli")).toBeLessThan((await sum("leasedMilli")) / 2);
  expect(await sum("usedMemoryBytes")).toBeGreaterThan(0);
  expect(await sum("usedMemoryBytes")).toBeLessThan(await sum("leasedMemoryBytes"));
  const { rows: waiting, rowCount } = await queue(ctx, { limit: 200 });
  expect(waiting.length).toBe(rowCount);
  expect(waiting.length).toBeGreaterThan(10);
  for (const { rule, reason } of waiting) expect(rule, reason).toBe("team-limit");
  expect(await rows(sql`select 1 from quotas where guaranteed_milli > limit_milli`)).toEqual([]);
});
