/** Streams of a process that has just started, and of one whose database connection restarts, on a real PostgreSQL. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { liveEvents, type Signal } from "#server/http/signals.ts";
import { live, notify } from "#server/live.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { type OpenStream, openStream } from "./testing-stream.ts";
import { GET as getLive } from "./v1/live/route.ts";

const STREAMS = 50;

let test: TestDatabase;
let world: World;
let streams: OpenStream[] = [];
beforeAll(async () => {
  test = await useTestDatabase({ max: 20 });
  world = await makeWorld(test.db);
});
afterAll(async () => {
  for (const stream of streams) stream.close();
  await live().close();
  await test.drop();
});

const open = async () => await openStream(getLive, "live?topics=pool", {}, { cookie: world.admin.cookie });

// First in this file and without a retry: at a retry the process listens already.
const once = { retry: 0 };
it("each of many streams receives a change committed right after it opens, at process start", once, async () => {
  const heard = await Promise.all(
    Array.from({ length: STREAMS }, async (_, n) => {
      const stream = await open();
      streams.push(stream);
      await notify(test.db, "pool", `gsv-${n}`);
      for (;;) {
        const event = (await stream.nextData()) as { id: string | null };
        if (event.id === `gsv-${n}`) return event;
      }
    }),
  );
  expect(heard).toEqual(heard.map((_, n) => ({ topic: "pool", id: `gsv-${n}` })));
});

it("each of many streams receives a change committed while the database connection restarts", async () => {
  for (const stream of streams) stream.close();
  streams = await Promise.all(Array.from({ length: STREAMS }, open));
  const listening = await test.sql`
    select pg_terminate_backend(pid, 5000) ended from pg_stat_activity
    where datname = current_database() and query ilike 'listen %'`;
  expect(listening).toEqual([{ ended: true }]);
  await notify(test.db, "pool", "gsv-gap");
  const heard = await Promise.all(streams.map(async (stream) => await stream.nextData()));
  expect(heard).toEqual(streams.map(() => ({ topic: "pool", id: null })));
});

it("queues live events from the call on, and ends them with the signal", async () => {
  await live().ready();
  const leaving = new AbortController();
  const seen: Signal[] = [];
  const as = (event: Signal) => {
    seen.push(event);
    return event;
  };
  const events = liveEvents(["pool"], leaving.signal, { as });
  await notify(test.db, "pool", "gsv-unread");
  await expect.poll(() => seen).toHaveLength(1);
  expect(await events.next()).toEqual({ done: false, value: { topic: "pool", id: "gsv-unread" } });
  const next = events.next();
  leaving.abort();
  expect(await next).toEqual({ done: true, value: undefined });
  const other = liveEvents(["pool"], new AbortController().signal);
  await notify(test.db, "pool", "gsv-later");
  expect(await other.next()).toEqual({ done: false, value: { topic: "pool", id: "gsv-later" } });
  await other.return();
  expect(await other.next()).toEqual({ done: true, value: undefined });
  expect(seen).toHaveLength(1);
});

it("replaces more than 1,000 waiting events by one that says that anything may have changed", async () => {
  await live().ready();
  const leaving = new AbortController();
  let heard = 0;
  const as = (event: Signal) => {
    heard += 1;
    return event;
  };
  const events = liveEvents(["pool"], leaving.signal, { as });
  await Promise.all(Array.from({ length: 1_100 }, async (_, n) => await notify(test.db, "pool", `gsv-away-${n}`)));
  await notify(test.db, "pool", "gsv-last");
  await expect.poll(() => heard).toBeGreaterThan(1_101);
  const ids: (string | null | undefined)[] = [];
  for await (const event of events) {
    ids.push(event?.id);
    if (event?.id === "gsv-last") break;
  }
  expect(ids[0]).toBeNull();
  expect(ids.length).toBeLessThan(110);
  leaving.abort();
});

it("refuses a person's 51st stream with 429, and opens one again once another is closed", async () => {
  for (const stream of streams) stream.close();
  const cookie = world.member.cookie;
  const ask = async () =>
    await getLive(new Request("http://localhost:3000/api/v1/live?topics=pool", { headers: { cookie } }), {
      params: Promise.resolve({}),
    });
  streams = await Promise.all(
    Array.from({ length: 50 }, async () => await openStream(getLive, "live?topics=pool", {}, { cookie })),
  );
  const refused = await ask();
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "10"]);
  expect(await refused.json()).toMatchObject({ error: { code: "too-many" } });
  // Somebody else's stream is not refused.
  streams.push(await open());
  streams.shift()?.close();
  streams.push(await openStream(getLive, "live?topics=pool", {}, { cookie }));
});
