import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { publicTopic } from "#server/contracts/live.ts";
import { workspaceEvents, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { SluiceError } from "#server/errors.ts";
import { route } from "#server/http/route.ts";
import { live, notify } from "#server/live.ts";
import { create as createToken } from "#server/services/access-token/create.ts";
import { revoke as revokeToken } from "#server/services/access-token/revoke.ts";
import { end } from "#server/services/session/end.ts";
import { addMember } from "#server/services/team/add-member.ts";
import { makePerson, makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { deactivate } from "#server/services/user/deactivate.ts";
import * as noSuchPath from "./[...path]/route.ts";
import { openStream } from "./testing-stream.ts";
import { GET as getLive } from "./v1/live/route.ts";
import { GET as getEvents } from "./v1/workspaces/[id]/events/route.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(async () => {
  await live().close();
  await test.drop();
});

const at = (params: Record<string, string> = {}) => ({ params: Promise.resolve(params) });
const echo = route(
  {
    method: "POST",
    path: "/echo",
    summary: "For this test",
    action: "api.describe",
    input: z.strictObject({ id: z.string(), n: z.number() }),
    output: z.strictObject({ id: z.string(), n: z.number() }),
  },
  (_ctx, input) => {
    if (input.n === 500) throw new Error("the password is hunter2");
    if (input.n === 409) throw new SluiceError("conflict", "It is there already.", { name: "x" });
    if (input.n === 1) return { id: input.id, n: "not a number" as unknown as number };
    return input;
  },
);
const post = (body: unknown, headers: Record<string, string> = {}, raw = false) =>
  echo(
    new Request("http://localhost:3000/api/v1/echo", {
      method: "POST",
      headers: { host: "localhost:3000", "content-type": "application/json", ...headers },
      body: raw ? (body as string) : JSON.stringify(body),
    }),
    at({ id: "a" }),
  );
const errorOf = async (response: Response) =>
  ((await response.json()) as { error: { code: string; message: string } }).error;

it("a path that is none answers with an error of the API, whatever the method", async () => {
  for (const handler of Object.values(noSuchPath)) {
    const answer = handler();
    expect(answer.status).toBe(404);
    expect((await errorOf(answer)).code).toBe("not-found");
  }
});

describe("a route", () => {
  it("answers with the trace id it was given, or a new one", async () => {
    const trace = "0af7651916cd43dd8448eb211c80319c";
    const given = await post({ n: 2 }, { traceparent: `00-${trace}-b7ad6b7169203331-01` });
    expect(given.headers.get("x-trace-id")).toBe(trace);
    expect((await post({ n: 2 })).headers.get("x-trace-id")).toMatch(/^[0-9a-f]{32}$/);
  });

  it("names each wrong field", async () => {
    const response = await post({ n: "two", extra: 1 });
    expect(response.status).toBe(400);
    const { message } = await errorOf(response);
    expect(message).toContain("n:");
    expect(message).toContain("extra");
  });

  it("says what is needed in words, once for each field", async () => {
    const { message } = await errorOf(await post({ n: "two", extra: 1 }));
    expect(message).toBe("n: A number is needed. There is no such field: extra.");
    expect((await errorOf(await post({}))).message).toBe("n: This is needed.");
  });

  it.each([
    { what: "that is no JSON", body: "{" },
    { what: "that is no object", body: "[]" },
    { what: "of another type", body: '{"n":2}', headers: { "content-type": "text/plain" } },
    { what: "with a NUL character", body: String.raw`{"n":2,"x":"a\u0000b"}` },
    { what: "that gives a path parameter again", body: '{"n":2,"id":"b"}' },
    { what: "that gives its fields by a prototype", body: '{"__proto__":{"n":2}}' },
  ])("refuses a body $what", async ({ body, headers }) => {
    expect((await post(body, headers, true)).status).toBe(400);
  });

  it("answers 413 to a body above 1 MiB", async () => {
    const response = await post(`{"n":2,"pad":"${"x".repeat(1 << 20)}"}`, {}, true);
    expect(response.status).toBe(413);
    expect((await errorOf(response)).code).toBe("too-large");
  });

  it.each([
    ["a value", "/echo?n=2&q=%00", {}, "x"],
    ["a name", "/echo?%00=2", {}, "x"],
    ["a path parameter", "/echo", {}, "\0"],
    ["a nested value", "/echo", { n: [{ deep: "\0" }] }, "x"],
    ["a nested name", "/echo", { n: { "\0": 1 } }, "x"],
  ])("refuses a NUL character in %s", async (_where, path, body, id) => {
    const response = await echo(
      new Request(`http://localhost:3000/api/v1${path}`, {
        method: "POST",
        headers: { host: "localhost:3000", "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
      at({ id }),
    );
    expect(response.status).toBe(400);
    expect((await errorOf(response)).message).toContain("NUL");
  });

  it("refuses half of a character, which JSON can write and no table can hold", async () => {
    for (const body of [String.raw`{"n":2,"x":"a\ud800"}`, String.raw`{"n":2,"x":{"\udc00":1}}`]) {
      const response = await post(body, {}, true);
      expect(response.status).toBe(400);
      expect((await errorOf(response)).message).toContain("half of a character");
    }
  });

  it("reads a body that is nested deeper than the stack", async () => {
    const response = await post(`{"n":2,"deep":${"[".repeat(200_000)}${"]".repeat(200_000)}}`, {}, true);
    expect(response.status).toBe(400);
  });

  it("maps our errors and tells nothing of others", async () => {
    expect(await errorOf(await post({ n: 409 }))).toEqual({
      code: "conflict",
      message: "It is there already.",
      detail: { name: "x" },
    });
    const response = await post({ n: 500 });
    expect(response.status).toBe(500);
    expect(JSON.stringify(await errorOf(response))).not.toContain("hunter2");
  });

  it("does not send an answer that breaks its contract", async () => {
    expect((await post({ n: 1 })).status).toBe(500);
  });

  it("takes changes by cookie from its own pages only", async () => {
    const { cookie } = world.admin;
    const own = "http://localhost:3000";
    const status = async (headers: Record<string, string>) => (await post({ n: 2 }, headers)).status;
    expect(await status({ cookie, origin: own, "sec-fetch-site": "same-origin" })).toBe(200);
    expect(await status({ cookie, origin: own })).toBe(200);
    expect(await status({ cookie, origin: "http://sample.localhost:3000", host: "sample.localhost:3000" })).toBe(200);
    expect(await status({ cookie })).toBe(403);
    expect(await status({ cookie, origin: "null" })).toBe(403);
    expect(await status({ cookie, origin: "http://localhost:3001" })).toBe(403);
    expect(await status({ cookie, origin: own, "sec-fetch-site": "same-site" })).toBe(403);
    expect(await status({ cookie, origin: "http://ws-a.localhost:3002", "sec-fetch-site": "cross-site" })).toBe(403);
    expect(await status({})).toBe(200);
  });

  it("does not believe a Host header that names the page's own origin", async () => {
    const { cookie } = world.admin;
    const evil = { cookie, origin: "http://evil.example:3000", host: "evil.example:3000" };
    expect((await post({ n: 2 }, evil)).status).toBe(403);
  });
});

describe("a stream", () => {
  it("sends a workspace's events as they are written, and resumes where it was cut", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member });
    const write = async (message: string) => {
      await test.db.transaction(async (tx) => {
        await tx
          .insert(workspaceEvents)
          .values({ workspaceId: id, generation: 1, kind: "log", step: "jupyter", message });
        await notify(tx, "workspace", id);
      });
    };
    await write("one");
    const first = await openStream(
      getEvents,
      `workspaces/${id}/events?follow`,
      { id },
      { cookie: world.member.cookie },
    );
    expect((await first.next()).message).toBe("one");
    await write("two");
    const second = await first.next();
    expect(second.message).toBe("two");
    first.close();
    await write("three");
    const resumed = await openStream(
      getEvents,
      `workspaces/${id}/events?follow`,
      { id },
      { cookie: world.member.cookie, "last-event-id": second.id },
    );
    expect((await resumed.next()).message).toBe("three");
    resumed.close();
  });

  it("ends when its session does", async () => {
    const person = await makePerson(test.db, { name: "Una", teams: { [world.team]: "member" } });
    const { id } = await makeWorkspace(world, { owner: person });
    const stream = await openStream(getEvents, `workspaces/${id}/events?follow`, { id }, { cookie: person.cookie });
    await end(person.ctx, { sessionId: person.sessionId });
    await expect(stream.next()).rejects.toThrow();
  });

  it.each([
    ["signed out", async (person: Person) => void (await end(person.ctx, { sessionId: person.sessionId }))],
    ["deactivated", async (person: Person) => void (await deactivate(world.admin.ctx, { id: person.id }))],
  ])("ends within two seconds when its person is %s, though nothing else happens", async (_, leave) => {
    const person = await makePerson(test.db, { name: "Uma", teams: { [world.team]: "member" } });
    const { id } = await makeWorkspace(world, { owner: person });
    const { cookie } = person;
    const streams = await Promise.all([
      openStream(getLive, "live?topics=pool", {}, { cookie }),
      openStream(getEvents, `workspaces/${id}/events?follow`, { id }, { cookie }),
    ]);
    await live().ready();
    const started = performance.now();
    await leave(person);
    for (const stream of streams) await stream.ended();
    expect(performance.now() - started).toBeLessThan(2000);
  });

  it("ends within two seconds when its access token is revoked", async () => {
    const { token, secret } = await createToken(world.member.ctx, { name: "follows", scopes: ["read"] });
    const stream = await openStream(getLive, "live?topics=pool", {}, { authorization: `Bearer ${secret}` });
    await live().ready();
    const started = performance.now();
    await revokeToken(world.member.ctx, { id: token.id });
    await stream.ended();
    expect(performance.now() - started).toBeLessThan(2000);
  });

  it("names what changed in the topics asked for, and no other; which one, to admins only", async () => {
    const topics = "live?topics=workspace,pool";
    const [member, admin] = await Promise.all(
      [world.member, world.admin].map(({ cookie }) => openStream(getLive, topics, {}, { cookie })),
    );
    await live().ready();
    await notify(test.db, "lease", "lea-x");
    await notify(test.db, "workspace", "ws-x");
    expect(await member?.nextData()).toEqual({ topic: "workspace", id: null });
    expect(await admin?.nextData()).toEqual({ topic: "workspace", id: "ws-x" });
    await notify(test.db, "pool", "gsv-x");
    expect(await member?.nextData()).toEqual({ topic: "pool", id: null });
    expect(await admin?.nextData()).toEqual({ topic: "pool", id: "gsv-x" });
    member?.close();
    admin?.close();
  });

  it("leaves out the audit for members, and goes on with the rest", async () => {
    const [member, lead] = await Promise.all(
      [world.member, world.lead].map(({ cookie }) => openStream(getLive, "live?topics=audit,lease", {}, { cookie })),
    );
    await live().ready();
    await notify(test.db, "audit", "usr-x");
    await notify(test.db, "lease", "lea-x");
    expect(await member?.nextData()).toEqual({ topic: "lease", id: null });
    expect(await lead?.nextData()).toEqual({ topic: "audit", id: null });
    member?.close();
    lead?.close();
    const alone = await getLive(
      new Request("http://localhost:3000/api/v1/live?topics=audit", { headers: { cookie: world.member.cookie } }),
      at(),
    );
    expect(alone.status).toBe(403);
  });

  it("says that there is something to read to whom it was told, not even to an admin", async () => {
    const topics = "live?topics=notice,pool";
    const [member, admin] = await Promise.all(
      [world.member, world.admin].map(({ cookie }) => openStream(getLive, topics, {}, { cookie })),
    );
    await live().ready();
    await notify(test.db, "notice", world.member.id);
    await notify(test.db, "pool", "gsv-x");
    expect(await admin?.nextData()).toEqual({ topic: "pool", id: "gsv-x" });
    expect(await member?.nextData()).toEqual({ topic: "notice", id: null });
    member?.close();
    admin?.close();
  });

  it("tells of what is one's own to whom it is alone, once the page was read", async () => {
    const { id } = await makeWorkspace(world, { owner: world.member });
    const topics = "live?topics=mine,pool";
    const [member, colleague] = await Promise.all(
      [world.member, world.colleague].map(({ cookie }) => openStream(getLive, topics, {}, { cookie })),
    );
    await live().ready();
    await notify(test.db, "workspace", id);
    expect(await member?.nextData()).toEqual({ topic: "mine", id: null });
    const late = await openStream(
      getLive,
      `${topics}&since=${Date.now() - 60_000}`,
      {},
      { cookie: world.member.cookie },
    );
    expect([await late.nextData(), await late.nextData()]).toContainEqual({ topic: "mine", id: null });
    await notify(test.db, "pool", "gsv-x");
    expect(await colleague?.nextData()).toEqual({ topic: "pool", id: null });
    for (const stream of [member, colleague, late]) stream?.close();
  });

  it("of the health is for admins", async () => {
    const ask = ({ cookie }: { cookie: string }) =>
      openStream(getLive, `live?topics=health,pool&since=${Date.now() - 60_000}`, {}, { cookie });
    const admin = await ask(world.admin);
    expect([await admin.nextData(), await admin.nextData()]).toContainEqual({ topic: "health", id: null });
    const lead = await ask(world.lead);
    await live().ready();
    expect(await lead.nextData()).toEqual({ topic: "pool", id: null });
    await notify(test.db, "pool", "gsv-x");
    expect(await lead.nextData()).toEqual({ topic: "pool", id: null });
    admin.close();
    lead.close();
  });

  it("follows all topics that pages may name at once, and hears of a change of people", async () => {
    const stream = await openStream(
      getLive,
      `live?topics=${publicTopic.options.join(",")}`,
      {},
      { cookie: world.member.cookie },
    );
    await live().ready();
    const { email } = await makePerson(test.db, { name: "Vera" });
    await addMember(world.admin.ctx, { teamId: world.team, email, role: "member" });
    // The audit's is not for members.
    expect(await stream.nextData()).toEqual({ topic: "people", id: null });
    stream.close();
  });

  it("of sessions is not for browsers", async () => {
    const response = await getLive(
      new Request("http://localhost:3000/api/v1/live?topics=session", { headers: { cookie: world.admin.cookie } }),
      at(),
    );
    expect(response.status).toBe(400);
  });
});

it("says that the database is away, and works again when it is back", async () => {
  const headers = { cookie: world.member.cookie, origin: "http://localhost:3000" };
  await test.sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
  await expect.poll(async () => (await post({ n: 2 }, headers)).status).toBe(200);
  expect(await test.db.select({ id: workspaces.id }).from(workspaces).where(eq(workspaces.id, "none"))).toEqual([]);
});
