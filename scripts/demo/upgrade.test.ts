/** A database full of accounts, brought from an older version's schema to this one's: nothing is lost, and sums agree. */
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemContext } from "#server/context.ts";
import type { Sql } from "#server/db/client.ts";
import { checkSchema, migrateDatabase } from "#server/db/migrate.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { closeMonth } from "#server/services/cost/close-month.ts";
import { setPrice } from "#server/services/cost/set-price.ts";
import { prepare } from "#server/services/setup/prepare.ts";
import { read } from "#server/services/utilisation/read.ts";
import { rollUp } from "#server/services/utilisation/roll-up.ts";
import { seed } from "./seed.ts";

const SIZE = { servers: 2, devices: 8, teams: 3, users: 9, workspaces: 27, days: 40 };

/** Filled by migrations from what was there. */
const DERIVED = ["usage_team_hours", "usage_team_days", "usage_weeks", "wait_days"];

type Rows = Record<string, unknown>[];

/** Filled by this version itself. */
let newest: TestDatabase;
let folder: string;

beforeAll(async () => {
  newest = await createTestDatabase();
  const ctx = systemContext(newest.db);
  await prepare(ctx);
  await seed(newest.db, SIZE);
  // No older version asked devices how active their multiprocessors were: of its time nobody will ever know.
  for (const table of ["leases", "lease_work", "usage_samples"]) {
    await newest.sql`update ${newest.sql(table)} set sm_active_us = 0, sm_known_us = 0, sm_estimated_us = 0`;
  }
  // Nor did they look for what was stranded.
  await newest.sql`delete from stranded_hours`;
  while (await rollUp(ctx));
  await setPrice(ctx, { type: "soft", basis: "hour", amount: 0.1 });
  await closeMonth(ctx, { month: monthBefore(new Date()) });
  folder = await mkdtemp(path.join(tmpdir(), "sluice-migrations-"));
}, 120_000);
afterAll(async () => {
  await newest.drop();
  await rm(folder, { recursive: true, force: true });
});

// The first of these versions kept accounts by the hour of persons, the next ones of teams, too.
describe.each(["0014_wait_rollup", "0023_pods", "0035_zone_versions_and_latest_starts"])("from %s", (tag) => {
  let old: TestDatabase;
  /** By table, the columns that both versions have. */
  let kept: Map<string, string[]>;
  beforeAll(async () => {
    old = await createTestDatabase();
    await old.sql`drop schema public cascade`;
    await old.sql`drop schema drizzle cascade`;
    await old.sql`create schema public`;
    await migrateDatabase(old.url, await migrationsUpTo(tag));
    kept = common(await columns(old.sql), await columns(newest.sql));
    await fill(old.sql, kept);
    const two = old.sql`select min(id) from workspaces`;
    await old.sql`update workspaces set default_milli = case when id = (${two}) then 2000 else 250 end`;
    await migrateDatabase(old.url);
    await checkSchema(old.sql);
  }, 120_000);
  afterAll(async () => old.drop());

  it("keeps every row of every table as it was", async () => {
    for (const table of ["leases", "lease_intervals", "usage_hours", "usage_days", "pool_hours", "cost_months"]) {
      expect(kept.has(table), table).toBe(true);
      expect(await newest.sql`select 1 from ${newest.sql(table)} limit 1`, table).toHaveLength(1);
    }
    for (const [table, names] of kept) {
      const before = await rowsOf(newest.sql, table, names);
      expect(await rowsOf(old.sql, table, names), table).toEqual(before);
    }
  });

  it("writes default amounts as they are typed", async () => {
    const rows = await old.sql<
      { amount: string }[]
    >`select distinct default_amount as amount from workspaces order by 1`;
    expect(rows.map(({ amount }) => amount)).toEqual(["0.25", "2"]);
  });

  it("makes the accounts that are new out of the old ones, and their sums agree", async () => {
    const [names] = [await columns(newest.sql)];
    for (const table of DERIVED) {
      const made = await rowsOf(old.sql, table, names.get(table) ?? []);
      expect(made.length, table).toBeGreaterThan(0);
      expect(made, table).toEqual(await rowsOf(newest.sql, table, names.get(table) ?? []));
    }
    const sum = async (table: string) => {
      const [row] = await old.sql`select sum(held) as held, sum(used) as used, sum(borrowed) as borrowed,
        sum(promised) as promised, sum(delivered) as delivered from ${old.sql(table)}`;
      return row;
    };
    expect(await sum("usage_team_hours")).toEqual(await sum("usage_hours"));
    expect(await sum("usage_team_days")).toEqual(await sum("usage_days"));
  });

  it("answers as a database that was this version's all along", async () => {
    const to = new Date();
    const asked = { from: new Date(to.getTime() - 30 * 86_400_000).toISOString(), to: to.toISOString() };
    const now = () => to;
    const answer = await read(systemContext(newest.db, { now }), asked);
    expect(answer.rows).toHaveLength(SIZE.teams);
    expect(await read(systemContext(old.db, { now }), asked)).toEqual(answer);
  });
});

async function migrationsUpTo(tag: string): Promise<string> {
  const copy = path.join(folder, tag);
  await cp("drizzle", copy, { recursive: true });
  const file = path.join(copy, "meta", "_journal.json");
  const journal = JSON.parse(await readFile(file, "utf8")) as { entries: { tag: string }[] };
  const last = journal.entries.findIndex((entry) => entry.tag === tag);
  expect(last, tag).toBeGreaterThan(0);
  await writeFile(file, JSON.stringify({ ...journal, entries: journal.entries.slice(0, last + 1) }));
  return copy;
}

async function columns(sql: Sql): Promise<Map<string, string[]>> {
  const rows = await sql<{ table: string; names: string[] }[]>`
    select table_name as table, array_agg(column_name::text order by column_name) as names
    from information_schema.columns where table_schema = 'public' group by 1`;
  return new Map(rows.map(({ table, names }) => [table, names]));
}

function common(old: Map<string, string[]>, now: Map<string, string[]>): Map<string, string[]> {
  const both = [...old].map(([table, names]) => {
    return [table, names.filter((name) => now.get(table)?.includes(name))] as const;
  });
  return new Map(both.filter(([, names]) => names.length > 0));
}

/** Writes what the newest database holds as the older schema has it; what triggers would do has been done. */
async function fill(sql: Sql, kept: Map<string, string[]>): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    for (const [table, names] of kept) {
      const rows = await rowsOf(newest.sql, table, names);
      await tx`delete from ${tx(table)}`;
      await tx`insert into ${tx(table)} (${tx(names)}) select ${tx(names)}
        from jsonb_populate_recordset(null::${tx(table)}, ${JSON.stringify(rows)}::text::jsonb)`;
    }
  });
}

/** All rows, in one order whichever database they are read from. */
async function rowsOf(sql: Sql, table: string, names: string[]): Promise<Rows> {
  const rows = await sql<{ row: Record<string, unknown> }[]>`
    select to_jsonb(t) as row from (select ${sql(names)} from ${sql(table)}) t order by to_jsonb(t)`;
  return rows.map(({ row }) => row);
}

function monthBefore(now: Date): string {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1)).toISOString().slice(0, 7);
}
