import { once } from "node:events";
import { eq } from "drizzle-orm";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { REACH_PATH } from "#server/contracts/gateway-paths.ts";
import { gatewaySessions, memberships, oneTimeCodes, sessions, users, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { sendChunks } from "#server/http/testing.ts";
import { end as endSession } from "#server/services/session/end.ts";
import { makeWorkspace, type Person } from "#server/services/testing.ts";
import { handover } from "#server/services/workspace/handover.ts";
import { stop } from "#server/services/workspace/stop.ts";
import { startGateway } from "./gateway.ts";
import {
  closes,
  echo,
  gatewayOptions,
  openSocket,
  resetSocket,
  SOON,
  send,
  startTestGateway,
  type TestGateway,
} from "./testing.ts";

const TOKEN = "the-servers-own-token";

let database: TestDatabase;
let world: TestGateway["world"];
let upstream: TestGateway["upstream"];
let gateway: TestGateway["gateway"];
let close: TestGateway["close"];
/** A running workspace of `member`, its hostname and origin. */
let ws: { id: string; host: string; origin: string };
let cookie: string;

beforeAll(async () => {
  database = await useTestDatabase();
  ({ world, upstream, gateway, close } = await startTestGateway(database));
});

afterAll(async () => {
  await close();
  await database.drop();
});

beforeEach(async () => {
  ws = await runningWorkspace(world.member);
  cookie = await enter(world.member, ws);
  upstream.seen.length = 0;
});

async function runningWorkspace(owner: Person) {
  const { id } = await makeWorkspace(world, { owner });
  await database.db
    .update(workspaces)
    .set({ endpoint: upstream.endpoint, serverToken: TOKEN })
    .where(eq(workspaces.id, id));
  const host = `${id}.localhost:3002`;
  return { id, host, origin: `http://${host}` };
}

async function openUrl(person: Person, id: string): Promise<string> {
  const url = new URL((await handover(person.ctx, { id })).url);
  return `${url.pathname}${url.search}`;
}

/** The way of a browser: the one-time code becomes a cookie. */
async function enter(person: Person, at: { id: string; host: string }): Promise<string> {
  const answer = await send(gateway.port, { host: at.host, path: await openUrl(person, at.id) });
  expect(answer.status).toBe(303);
  return (answer.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
}

it("tells a browser that it can reach a workspace's hostname, without a session and without a refusal", async () => {
  for (const host of [ws.host, ws.host.replace(/^ws-./, "ws-z")]) {
    const { status, body } = await send(gateway.port, { host, path: REACH_PATH });
    expect([status, body]).toEqual([204, ""]);
  }
  expect((await send(gateway.port, { host: ws.host, path: `${REACH_PATH}/lab` })).status).toBe(401);
});

it.each([
  ["/healthz", async () => ({ host: "localhost:3002", path: "/healthz" })],
  ["the handover", async () => ({ host: ws.host, path: await openUrl(world.member, ws.id) })],
  ["the address that tells that it can be reached", async () => ({ host: ws.host, path: REACH_PATH })],
])("answers 413 to a body that goes on and on at %s, an address of its own", async (_, address) => {
  const at = await address();
  const sent = { path: at.path, headers: { host: at.host }, chunks: 64, chunkBytes: 1024 * 1024 };
  expect((await sendChunks(gateway.port, sent)).status).toBe(413);
});

const get = (path: string, headers: Record<string, string> = {}) =>
  send(gateway.port, { host: ws.host, path, headers });
const upgrade = (headers: Record<string, string>, path = "/api/kernels/1/channels") =>
  openSocket(gateway.port, { host: ws.host, path, headers });

describe("the one-time code", () => {
  it("becomes a host-only cookie that scripts cannot read, and leads to JupyterLab", async () => {
    const answer = await send(gateway.port, { host: ws.host, path: await openUrl(world.member, ws.id) });
    expect(answer.headers.location).toBe("/lab");
    const set = answer.headers["set-cookie"]?.[0] ?? "";
    expect(set).toContain("HttpOnly");
    expect(set).toContain("SameSite=Lax");
    expect(set).toContain("Path=/");
    expect(set).not.toMatch(/domain/i);
  });

  it("works once", async () => {
    const path = await openUrl(world.member, ws.id);
    expect((await send(gateway.port, { host: ws.host, path })).status).toBe(303);
    expect((await send(gateway.port, { host: ws.host, path })).status).toBe(403);
  });

  it("is used up by one of two that come at the same moment", async () => {
    const path = await openUrl(world.member, ws.id);
    const both = await Promise.all([1, 2].map(() => send(gateway.port, { host: ws.host, path })));
    expect(both.map((answer) => answer.status).sort()).toEqual([303, 403]);
  });

  it("is refused on another workspace's hostname", async () => {
    const other = await runningWorkspace(world.member);
    expect((await send(gateway.port, { host: other.host, path: await openUrl(world.member, ws.id) })).status).toBe(403);
  });

  it("is refused after its 60 seconds", async () => {
    const path = await openUrl(world.member, ws.id);
    await database.db
      .update(oneTimeCodes)
      .set({ expiresAt: new Date(Date.now() - 1) })
      .where(eq(oneTimeCodes.workspaceId, ws.id));
    expect((await get(path)).status).toBe(403);
  });

  it("is refused when its browser session has ended", async () => {
    const path = await openUrl(world.colleague, (await runningWorkspaceOf(world.colleague)).id);
    await database.db.update(sessions).set({ revokedAt: new Date() }).where(eq(sessions.id, world.colleague.sessionId));
    expect((await send(gateway.port, { host: ws.host, path })).status).toBe(403);
    await database.db.update(sessions).set({ revokedAt: null }).where(eq(sessions.id, world.colleague.sessionId));
  });

  it("is not taken by a prefetch, an embedded frame, or another method than GET", async () => {
    const path = await openUrl(world.member, ws.id);
    expect((await get(path, { "sec-purpose": "prefetch" })).status).toBe(403);
    expect((await get(path, { "sec-fetch-dest": "iframe" })).status).toBe(403);
    expect(
      (await send(gateway.port, { host: ws.host, path, method: "POST", headers: { origin: ws.origin } })).status,
    ).toBe(403);
    expect((await get(path)).status).toBe(303);
  });
});

async function runningWorkspaceOf(person: Person) {
  ws = await runningWorkspace(person);
  return ws;
}

describe("a request with the cookie", () => {
  it("reaches the workspace with the server's own token", async () => {
    const answer = await get("/api/contents?content=1", { cookie });
    expect(answer.status).toBe(200);
    expect(upstream.seen[0]).toMatchObject({ method: "GET", url: "/api/contents?content=1" });
    expect(upstream.seen[0]?.headers.authorization).toBe(`token ${TOKEN}`);
    expect(upstream.seen[0]?.headers.host).toBe(ws.host);
  });

  it("takes neither the client's Authorization nor cookies nor ?token= along", async () => {
    await get("/lab?a=1&token=mine&%74oken=mine&b=2", {
      cookie: `${cookie}; _xsrf=abc; theme=dark`,
      authorization: "token mine",
      "x-forwarded-for": "10.0.0.1",
      "x-forwarded-host": "evil.example",
    });
    const [seen] = upstream.seen;
    expect(seen?.url).toBe("/lab?a=1&b=2");
    expect(seen?.headers.cookie).toBeUndefined();
    expect(seen?.headers.authorization).toBe(`token ${TOKEN}`);
    expect(seen?.headers["x-forwarded-for"]).toBeUndefined();
    expect(seen?.headers["x-forwarded-host"]).toBeUndefined();
  });

  it("brings back no cookie and no permission for other origins, and cannot be framed by others", async () => {
    const { headers } = await get("/lab", { cookie });
    expect(headers["set-cookie"]).toBeUndefined();
    expect(headers["access-control-allow-origin"]).toBeUndefined();
    expect(headers["x-frame-options"]).toBe("SAMEORIGIN");
    expect(headers["cross-origin-resource-policy"]).toBe("same-origin");
    expect(headers["x-content-type-options"]).toBe("nosniff");
  });

  it("carries an upload of 32 MiB through", async () => {
    const body = Buffer.alloc(32 * 2 ** 20, 7);
    const path = "/api/contents/big";
    const answer = await send(gateway.port, {
      host: ws.host,
      path,
      method: "PUT",
      headers: { cookie, origin: ws.origin },
      body,
    });
    expect(JSON.parse(answer.body)).toMatchObject({ bytes: body.length });
  });

  it("goes only where the database says, whatever the request names", async () => {
    for (const path of ["http://169.254.169.254/latest/meta-data", "//169.254.169.254/", "/\\169.254.169.254/"]) {
      expect((await get(path, { cookie })).status).toBe(400);
    }
    expect(upstream.seen).toEqual([]);
  });

  it("finds the cookie beside one of the same name that another host has laid", async () => {
    const [name] = cookie.split("=");
    expect((await get("/lab", { cookie: `${name}=${"A".repeat(43)}; ${cookie}` })).status).toBe(200);
  });
});

describe("who is kept out", () => {
  it("nobody without a cookie: a page that says what to do", async () => {
    const answer = await get("/lab", { accept: "text/html" });
    expect(answer.status).toBe(401);
    expect(answer.headers["content-security-policy"]).toContain("default-src 'none'");
    expect(answer.body).toContain(`http://localhost:3000/workspaces/${ws.id}`);
    expect(upstream.seen).toEqual([]);
  });

  it("a cookie of another workspace", async () => {
    const other = await runningWorkspace(world.colleague);
    const theirs = await enter(world.colleague, other);
    expect((await get("/lab", { cookie: theirs })).status).toBe(401);
    expect((await upgrade({ cookie: theirs, origin: ws.origin })).status).toBe(401);
  });

  it("a portal session's cookie, a personal token, a guessed Authorization", async () => {
    expect((await get("/lab", { cookie: world.member.cookie })).status).toBe(401);
    expect((await get("/lab", { authorization: `token ${TOKEN}` })).status).toBe(401);
    expect((await get(`/lab?token=${TOKEN}`)).status).toBe(401);
  });

  it("an admin or a colleague cannot even get a code", async () => {
    for (const person of [world.admin, world.colleague, world.lead, world.outsider]) {
      await expect(handover(person.ctx, { id: ws.id })).rejects.toMatchObject({ code: /forbidden|not-found/ });
    }
  });

  it("a workspace that does not exist is a 404, and so is a foreign hostname", async () => {
    const answer = (host: string) =>
      send(gateway.port, { host, path: "/lab", headers: { accept: "text/html", cookie } });
    expect((await answer(`ws-${"a".repeat(26)}.localhost:3002`)).status).toBe(404);
    expect((await answer("localhost:3002")).status).toBe(404);
    expect((await answer(`${ws.id}.evil.example`)).status).toBe(404);
  });
});

describe("requests from other sites", () => {
  const put = (headers: Record<string, string>) =>
    send(gateway.port, { host: ws.host, path: "/api/contents/x", method: "PUT", headers: { cookie, ...headers } });

  it("need the exact Origin on everything that is not GET", async () => {
    expect((await put({ origin: ws.origin })).status).toBe(200);
    upstream.seen.length = 0;
    expect((await put({})).status).toBe(403);
    for (const origin of [
      "http://localhost:3000",
      "null",
      `https://${ws.host}`,
      `http://x.${ws.host}`,
      `${ws.origin}0`,
    ]) {
      expect((await put({ origin })).status).toBe(403);
    }
    expect(upstream.seen).toEqual([]);
  });

  it("need the exact Origin on every upgrade", async () => {
    const open = await upgrade({ cookie, origin: ws.origin });
    expect(open.status).toBe(101);
    open.socket?.terminate();
    expect((await upgrade({ cookie })).status).toBe(403);
    expect((await upgrade({ cookie, origin: "http://localhost:3000" })).status).toBe(403);
    const sibling = await runningWorkspace(world.member);
    expect((await upgrade({ cookie, origin: sibling.origin })).status).toBe(403);
  });

  it("are refused when the browser says cross-site or same-site, but for a person's click on a link", async () => {
    for (const site of ["cross-site", "same-site"]) {
      expect((await get("/api/contents", { cookie, "sec-fetch-site": site, "sec-fetch-mode": "cors" })).status).toBe(
        403,
      );
      expect(
        (
          await get("/files/x.png", {
            cookie,
            "sec-fetch-site": site,
            "sec-fetch-mode": "no-cors",
            "sec-fetch-dest": "image",
          })
        ).status,
      ).toBe(403);
      expect(
        (
          await get("/lab", {
            cookie,
            "sec-fetch-site": site,
            "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "iframe",
          })
        ).status,
      ).toBe(403);
      expect(
        (
          await get("/lab", {
            cookie,
            "sec-fetch-site": site,
            "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "document",
          })
        ).status,
      ).toBe(200);
      expect((await upgrade({ cookie, origin: ws.origin, "sec-fetch-site": site })).status).toBe(403);
    }
    expect(
      (await get("/api/contents", { cookie, "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors" })).status,
    ).toBe(200);
    expect(
      (
        await put({
          origin: ws.origin,
          "sec-fetch-site": "cross-site",
          "sec-fetch-mode": "navigate",
          "sec-fetch-dest": "document",
        })
      ).status,
    ).toBe(403);
  });
});

describe("WebSockets", () => {
  it("carry the server's token, no cookie, no ?token=, and every message", async () => {
    const open = await upgrade(
      { cookie, origin: ws.origin, authorization: "token mine" },
      "/api/kernels/1/channels?session_id=s&token=mine",
    );
    expect(open.status).toBe(101);
    if (open.socket === undefined) return;
    expect(await echo(open.socket, "x = 42")).toBe("x = 42");
    const seen = upstream.seen.find((request) => request.method === "UPGRADE");
    expect(seen?.url).toBe("/api/kernels/1/channels?session_id=s");
    expect(seen?.headers.authorization).toBe(`token ${TOKEN}`);
    expect(seen?.headers.cookie).toBeUndefined();
    open.socket.terminate();
  });

  it("bring what the server says first, in one piece with its answer", async () => {
    for (let turn = 0; turn < 20; turn++) {
      const open = await upgrade({ cookie, origin: ws.origin }, "/speaks-first");
      await vi.waitFor(() => expect(open.heard).toEqual(["one", "two"]), SOON);
      open.socket?.terminate();
    }
  });

  it("come and go without Nagle's delay", async () => {
    const open = await upgrade({ cookie, origin: ws.origin });
    if (open.socket === undefined) throw new Error("not open");
    const durations: number[] = [];
    for (let turn = 0; turn < 50; turn++) {
      const started = performance.now();
      await echo(open.socket, "a small message");
      durations.push(performance.now() - started);
    }
    // The delay is 40 ms for every message. The lower quartile leaves out the pauses of a loaded machine.
    expect(durations.sort((a, b) => a - b)[12]).toBeLessThan(20);
    open.socket.terminate();
  });

  it("may be reset by the browser at any moment, and the gateway goes on", async () => {
    const other = await upgrade({ cookie, origin: ws.origin });
    if (other.socket === undefined) throw new Error("not open");
    const path = "/api/kernels/1/channels";
    for (let turn = 0; turn < 20; turn++) {
      await resetSocket(gateway.port, { host: ws.host, path, headers: { cookie, origin: ws.origin } });
    }
    expect(await echo(other.socket, "still here")).toBe("still here");
    other.socket.terminate();
  });

  it("are told by 1012 that a gateway ends to be started again, whatever came before", async () => {
    const leaving = await startGateway(database, gatewayOptions);
    const headers = { cookie, origin: ws.origin };
    const open = await openSocket(leaving.port, { host: ws.host, path: "/api/kernels/1/channels", headers });
    if (open.socket === undefined) throw new Error("not open");
    for (const length of [1, 126, 70_000]) expect(await echo(open.socket, "x".repeat(length))).toHaveLength(length);
    const ended = once(open.socket, "close");
    await leaving.close();
    expect(await ended).toEqual([1012, Buffer.from("")]);
  });

  it("carry a message of 100 MB, with backpressure while the client does not read", async () => {
    const bytes = 100_000_000;
    const open = await upgrade({ cookie, origin: ws.origin }, "/large");
    if (open.socket === undefined) throw new Error("not open");
    const { socket } = open;
    const echoed = once(socket, "message");
    socket.send(Buffer.alloc(bytes, 1));
    expect(((await echoed)[0] as Buffer).length).toBe(bytes);
    socket.pause();
    upstream.sendToAll(Buffer.alloc(bytes, 2));
    // The rest is in the buffers of the gateway and of four sockets.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(upstream.buffered()).toBeGreaterThan(bytes - 20_000_000);
    const late = once(socket, "message");
    socket.resume();
    expect(((await late)[0] as Buffer).length).toBe(bytes);
    socket.terminate();
  });

  it("are refused without a session, and after it was revoked", async () => {
    expect((await upgrade({ origin: ws.origin })).status).toBe(401);
    await database.db
      .update(gatewaySessions)
      .set({ revokedAt: new Date() })
      .where(eq(gatewaySessions.workspaceId, ws.id));
    expect((await upgrade({ cookie, origin: ws.origin })).status).toBe(401);
  });
});

describe("what is open ends when the right to it ends", () => {
  let person: Person;

  async function open() {
    const result = await upgrade({ cookie, origin: ws.origin });
    if (result.socket === undefined) throw new Error(`not open: ${result.status}`);
    expect(await echo(result.socket, "still here")).toBe("still here");
    return result.socket;
  }

  beforeEach(() => {
    person = world.member;
  });

  afterEach(async () => {
    await database.db.update(sessions).set({ revokedAt: null }).where(eq(sessions.id, person.sessionId));
    await database.db.update(users).set({ disabledAt: null }).where(eq(users.id, person.id));
    await database.db
      .insert(memberships)
      .values({ teamId: world.team, userId: person.id, role: "member" })
      .onConflictDoNothing();
  });

  it("when the person signs out", async () => {
    const socket = await open();
    await endSession(person.ctx, { sessionId: person.sessionId });
    expect(await closes(socket)).toBe(true);
    expect((await get("/lab", { cookie })).status).toBe(401);
  });

  it("when the workspace is stopped", async () => {
    const socket = await open();
    await stop(person.ctx, { id: ws.id });
    expect(await closes(socket)).toBe(true);
    expect((await get("/lab", { cookie })).status).toBe(424);
  });

  it("when the person leaves the team", async () => {
    const socket = await open();
    await database.db.delete(memberships).where(eq(memberships.userId, person.id));
    expect(await closes(socket)).toBe(true);
    expect((await get("/lab", { cookie })).status).toBe(403);
    expect((await upgrade({ cookie, origin: ws.origin })).status).toBe(403);
  });

  it("when the account is disabled", async () => {
    const socket = await open();
    await database.db.update(users).set({ disabledAt: new Date() }).where(eq(users.id, person.id));
    expect(await closes(socket)).toBe(true);
    expect((await get("/lab", { cookie })).status).toBe(401);
  });

  it("a download that is under way, too", async () => {
    const pending = send(gateway.port, { host: ws.host, path: "/slow", headers: { cookie } });
    pending.catch(() => undefined);
    await expect.poll(() => upstream.seen.length, SOON).toBe(1);
    await stop(person.ctx, { id: ws.id });
    await expect(pending).rejects.toThrow();
  });

  it("but not what another session or another workspace has open", async () => {
    const other = await runningWorkspace(world.colleague);
    const theirs = await openSocket(gateway.port, {
      host: other.host,
      path: "/x",
      headers: { origin: other.origin, cookie: await enter(world.colleague, other) },
    });
    if (theirs.socket === undefined) throw new Error("not open");
    const socket = await open();
    await stop(person.ctx, { id: ws.id });
    expect(await closes(socket)).toBe(true);
    expect(await echo(theirs.socket, "still here")).toBe("still here");
    theirs.socket.terminate();
  });
});

describe("a session of the gateway", () => {
  const HOUR_MS = 3_600_000;
  const portalEnds = new Date(Date.now() + 7 * 24 * HOUR_MS);
  const setEnd = (expiresAt: Date) =>
    database.db.update(gatewaySessions).set({ expiresAt }).where(eq(gatewaySessions.workspaceId, ws.id));
  const setPortalEnd = (expiresAt: Date) =>
    database.db.update(sessions).set({ expiresAt }).where(eq(sessions.id, world.member.sessionId));
  const endOf = async () =>
    (await database.db.select().from(gatewaySessions).where(eq(gatewaySessions.workspaceId, ws.id)))[0]?.expiresAt;
  const hoursLeft = async () => Math.round((((await endOf())?.getTime() ?? 0) - Date.now()) / HOUR_MS);

  beforeEach(async () => void (await setPortalEnd(portalEnds)));
  afterEach(async () => void (await setPortalEnd(portalEnds)));

  it("is renewed by a request", async () => {
    await setEnd(new Date(Date.now() + HOUR_MS));
    expect((await get("/lab", { cookie })).status).toBe(200);
    expect(await hoursLeft()).toBe(12);
  });

  it("is renewed by an open WebSocket alone", async () => {
    const open = await upgrade({ cookie, origin: ws.origin });
    await setEnd(new Date(Date.now() + HOUR_MS));
    await expect.poll(hoursLeft, SOON).toBe(12);
    open.socket?.terminate();
  });

  it("is written at most once in ten minutes", async () => {
    const before = await endOf();
    for (let n = 0; n < 3; n++) expect((await get("/lab", { cookie })).status).toBe(200);
    expect(await endOf()).toEqual(before);
  });

  it("never outlasts its sign-in session", async () => {
    const end = new Date(Date.now() + 2 * HOUR_MS);
    await setPortalEnd(end);
    await setEnd(new Date(Date.now() + HOUR_MS));
    expect((await get("/lab", { cookie })).status).toBe(200);
    expect(await endOf()).toEqual(end);
    const other = await runningWorkspace(world.member);
    await enter(world.member, other);
    const [entered] = await database.db.select().from(gatewaySessions).where(eq(gatewaySessions.workspaceId, other.id));
    expect(entered?.expiresAt).toEqual(end);
  });

  it("ends twelve hours after its last use", async () => {
    expect(await hoursLeft()).toBe(12);
    await setEnd(new Date(Date.now() - 1));
    expect((await get("/lab", { cookie })).status).toBe(401);
  });

  it("tells JupyterLab to sign in again, with a status that does not mean a dead kernel", async () => {
    const socket = (await upgrade({ cookie, origin: ws.origin })).socket;
    if (socket === undefined) throw new Error("not open");
    await setPortalEnd(new Date(Date.now() - 1));
    expect(await closes(socket)).toBe(true);
    for (const path of ["/api/kernels", "/api/kernels/1", "/api/sessions", "/api/contents/a.ipynb"]) {
      const answer = await get(path, { cookie });
      expect([path, answer.status]).toEqual([path, 424]);
      expect(JSON.parse(answer.body)).toEqual({
        error: { code: "unauthenticated", message: "Session expired. Sign in to reconnect." },
        message: "Session expired.\nSign in to reconnect.",
      });
      expect(answer.headers["x-sluice-sign-in"]).toBe(`http://localhost:3000/workspaces/${ws.id}`);
    }
    // A page request gets a page with the next step.
    expect((await get("/lab", { cookie, accept: "text/html" })).status).toBe(401);
    await setPortalEnd(portalEnds);
    const again = await enter(world.member, ws);
    expect((await get("/api/kernels/1", { cookie: again })).status).toBe(200);
    expect((await upgrade({ cookie: again, origin: ws.origin })).status).toBe(101);
  });

  it("of a person who has left the team does not mean a dead kernel either", async () => {
    await database.db.delete(memberships).where(eq(memberships.userId, world.member.id));
    const answer = await get("/api/kernels/1", { cookie });
    expect(answer.status).toBe(424);
    expect(answer.body).toContain("no longer in the team");
    await database.db.insert(memberships).values({ teamId: world.team, userId: world.member.id, role: "member" });
  });
});

describe("the look of the portal's pages", () => {
  const access = async (headers: Record<string, string>) => await get("/_sluice/access", headers);

  it("is told to the workspace's own pages, as it is chosen now", async () => {
    expect(JSON.parse((await access({ cookie })).body)).toEqual({ refusal: null, theme: "system" });
    for (const chosen of ["dark", "light"] as const) {
      await database.db.update(sessions).set({ theme: chosen }).where(eq(sessions.id, world.member.sessionId));
      expect(JSON.parse((await access({ cookie })).body)).toEqual({ refusal: null, theme: chosen });
    }
    expect(upstream.seen).toEqual([]);
  });

  it("is told to nobody without access, and to no other site", async () => {
    expect((await access({})).status).toBe(401);
    expect((await access({ cookie, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" })).status).toBe(403);
  });
});

describe("pages for workspaces that cannot be reached", () => {
  const page = () => get("/lab", { cookie, accept: "text/html" });
  const set = (change: Partial<typeof workspaces.$inferInsert>) =>
    database.db.update(workspaces).set(change).where(eq(workspaces.id, ws.id));

  it("424 says that it is stopped, starting or failed, and leads to the portal", async () => {
    await set({ desired: "stopped", observed: "stopped", endpoint: null });
    expect(await page()).toMatchObject({ status: 424, body: expect.stringContaining("is stopped") as string });
    await set({ desired: "running", observed: "starting" });
    const starting = await page();
    expect(starting).toMatchObject({ status: 424, body: expect.stringContaining("is starting") as string });
    expect(starting.body).toContain('http-equiv="refresh"');
    await set({ observed: "failed", message: "The <disk> is full." });
    expect(await page()).toMatchObject({
      status: 424,
      body: expect.stringContaining("The &lt;disk&gt; is full.") as string,
    });
  });

  it("503 when it should run and does not answer, also for a WebSocket", async () => {
    await set({ endpoint: "http://127.0.0.1:1" });
    expect(await page()).toMatchObject({ status: 503, body: expect.stringContaining("does not answer") as string });
    expect((await upgrade({ cookie, origin: ws.origin })).status).toBe(503);
  });

  it("an answer that breaks off ends the browser's request, too", async () => {
    await expect(get("/dies", { cookie })).rejects.toThrow(/aborted|reset|hang up/);
  });

  it("JSON for programs", async () => {
    const answer = await get("/files/notes.txt");
    expect(answer.status).toBe(401);
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(JSON.parse(answer.body)).toMatchObject({
      error: { code: "unauthenticated", message: expect.stringContaining("portal") as string },
    });
  });

  it("answers its own health check on any hostname that is no workspace's", async () => {
    const answer = await send(gateway.port, { host: "127.0.0.1:3002", path: "/healthz" });
    expect(answer.status).toBe(200);
  });

  it("keeps idle connections for 95 s", async () => {
    const headers = { connection: "keep-alive" };
    const answer = await send(gateway.port, { host: "127.0.0.1:3002", path: "/healthz", headers });
    expect(answer.headers["keep-alive"]).toBe("timeout=95");
  });
});
