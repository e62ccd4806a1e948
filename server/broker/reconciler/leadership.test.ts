import { afterAll, beforeAll, expect, it } from "vitest";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { logger } from "#server/log.ts";
import { holdLeadership, type Leadership, LOCKS } from "./leadership.ts";

let database: TestDatabase;
let leader: Leadership;

beforeAll(async () => {
  database = await useTestDatabase({ max: 10 });
  leader = holdLeadership(database.sql, logger("test"), "dataset measuring");
});
afterAll(async () => {
  await leader?.release();
  await database?.drop();
});

const other = () => holdLeadership(database.sql, logger("test"), "dataset measuring");
const askedAtOnce = async () => await Promise.all(Array.from({ length: 8 }, async () => await leader.isLeader()));
/** Ends the connection that has the lock, as a failover does. */
const cut = async () => {
  const lock = LOCKS["dataset measuring"];
  await database.sql`
    select pg_terminate_backend(pid) from pg_locks
    where locktype = 'advisory' and objid = ${lock} and database = (select oid from pg_database where datname = current_database())`;
};

it("is one process's, and the next one's when that lets go", async () => {
  expect(await askedAtOnce()).toEqual(Array(8).fill(true));
  const second = other();
  expect(await second.isLeader()).toBe(false);
  await leader.release();
  expect(await second.isLeader()).toBe(true);
  expect(await leader.isLeader()).toBe(false);
  await second.release();
});

it("is taken again by one question when its connection is lost, however many ask, and can be let go of", async () => {
  for (let round = 0; round < 5; round++) {
    expect(await leader.isLeader()).toBe(true);
    await cut();
    expect(await askedAtOnce()).toEqual(Array(8).fill(true));
  }
  await leader.release();
  const second = other();
  expect(await second.isLeader()).toBe(true);
  await second.release();
});
