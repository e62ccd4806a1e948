import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openDatabase } from "#server/db/client.ts";
import { startEmbeddedPostgres } from "#server/db/embedded.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { createLive, type Live, type LiveEvent, notify } from "#server/live.ts";

let test: TestDatabase;
let live: Live;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(async () => await test.drop());
afterEach(async () => await live.close());

const SUBSCRIBERS = 50;
const subscribeMany = (): LiveEvent[][] =>
  Array.from({ length: SUBSCRIBERS }, () => {
    const heard: LiveEvent[] = [];
    live.subscribe(["pool"], (event) => heard.push(event));
    return heard;
  });
/** Number of subscribers with this change, or with an event that anything may have changed. */
const haveHeard = (all: LiveEvent[][], id: string | null) =>
  all.filter((heard) => heard.some((event) => event.topic === "pool" && (event.id === null || event.id === id))).length;

describe("a subscriber", () => {
  it("receives a change committed before the first LISTEN", async () => {
    live = createLive(test.sql);
    const all = subscribeMany();
    await notify(test.db, "pool", "gsv-early");
    await live.ready();
    expect(haveHeard(all, "gsv-early")).toBe(SUBSCRIBERS);
    // The change itself may have arrived as well: the two raced.
    expect(all[0]?.filter(({ id }) => id === null)).toEqual([{ topic: "pool", id: null }]);
  });

  it("receives no change from before its subscription to a listening process", async () => {
    live = createLive(test.sql);
    await live.ready();
    await notify(test.db, "pool", "gsv-early");
    const [early] = subscribeMany();
    await notify(test.db, "pool", "gsv-late");
    await expect.poll(() => early?.at(-1)).toEqual({ topic: "pool", id: "gsv-late" });
    expect(early?.every(({ id }) => id !== null)).toBe(true);
  });

  it("receives a change committed while the LISTEN connection restarts", async () => {
    live = createLive(test.sql);
    const all = subscribeMany();
    await live.ready();
    for (const heard of all) heard.length = 0;
    const ended = await test.sql`
      select pg_terminate_backend(pid, 5000) ended from pg_stat_activity
      where datname = current_database() and query ilike 'listen %'`;
    expect(ended).toEqual([{ ended: true }]);
    await notify(test.db, "pool", "gsv-gap");
    await expect.poll(() => haveHeard(all, "gsv-gap"), { timeout: 10_000 }).toBe(SUBSCRIBERS);
    await notify(test.db, "pool", "gsv-after");
    await expect.poll(() => all.filter((heard) => heard.some(({ id }) => id === "gsv-after")).length).toBe(SUBSCRIBERS);
  });
});

describe("while PostgreSQL is away", () => {
  it("ready fails, and each later change reaches a subscriber once", { timeout: 60_000 }, async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "sluice-live-"));
    const first = await startEmbeddedPostgres(folder);
    const database = openDatabase(first.url, { max: 2 });
    await first.stop();
    live = createLive(database.sql);
    const heard: LiveEvent[] = [];
    live.subscribe(["pool"], (event) => heard.push(event));
    await expect(live.ready()).rejects.toMatchObject({ code: "unavailable" });
    const second = await startEmbeddedPostgres(folder);
    await live.ready();
    expect(heard).toEqual([{ topic: "pool", id: null }]);
    for (const id of ["gsv-1", "gsv-2"]) await notify(database.db, "pool", id);
    await expect.poll(() => heard.slice(1).map(({ id }) => id)).toEqual(["gsv-1", "gsv-2"]);
    await live.close();
    await database.close();
    await second.stop();
    await rm(folder, { recursive: true, force: true });
  });
});
