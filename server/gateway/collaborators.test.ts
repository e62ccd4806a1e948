/** What a viewer's browser can make of the gateway, and when a collaborator's way in ends. */
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { WebSocket } from "ws";
import { memberships, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { makeWorkspace, type Person } from "#server/services/testing.ts";
import { handover } from "#server/services/workspace/handover.ts";
import { add } from "#server/services/workspace-collaborator/add.ts";
import { remove } from "#server/services/workspace-collaborator/remove.ts";
import { closes, closesWithin, echo, openSocket, SOON, send, startTestGateway, type TestGateway } from "./testing.ts";

const kernel = `/api/kernels/${"0".repeat(8)}-0000-0000-0000-${"0".repeat(12)}`;

let database: TestDatabase;
let world: TestGateway["world"];
let upstream: TestGateway["upstream"];
let gateway: TestGateway["gateway"];
let close: TestGateway["close"];
let id: string;
let host: string;
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
  ({ id } = await makeWorkspace(world, { owner: world.member }));
  const running = { endpoint: upstream.endpoint, serverToken: "the-servers-own-token", lastActivityAt: null };
  await database.db.update(workspaces).set(running).where(eq(workspaces.id, id));
  host = `${id}.localhost:3002`;
});

const guest = () => world.outsider;
const origin = () => `http://${host}`;

async function enter(person: Person): Promise<{ cookie: string; location: string | undefined }> {
  const url = new URL((await handover(person.ctx, { id })).url);
  const answer = await send(gateway.port, { host, path: `${url.pathname}${url.search}` });
  expect(answer.status).toBe(303);
  return {
    cookie: (answer.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "",
    location: answer.headers.location,
  };
}

async function comeAs(role: "viewer" | "editor"): Promise<string | undefined> {
  await add(world.member.ctx, { id, person: guest().email, role });
  const entered = await enter(guest());
  cookie = entered.cookie;
  upstream.seen.length = 0;
  return entered.location;
}

const ask = (path: string, method = "GET", headers: Record<string, string> = {}, body?: Buffer) =>
  send(gateway.port, { host, path, method, headers: { cookie, origin: origin(), ...headers }, body });
const upgrade = (path: string, headers: Record<string, string> = {}) =>
  openSocket(gateway.port, { host, path, headers: { cookie, origin: origin(), ...headers } });

async function opened(path = `${kernel}/channels`): Promise<WebSocket> {
  const { socket, status } = await upgrade(path);
  if (socket === undefined) throw new Error(`not open: ${status}`);
  expect(await echo(socket, "still here")).toBe("still here");
  return socket;
}

describe("a viewer", () => {
  beforeEach(async () => {
    // Not the owner's open notebooks, whose kernels JupyterLab would ask for.
    expect(await comeAs("viewer")).toBe("/lab/workspaces/viewer");
  });

  it.each([
    ...["/lab", "/lab/tree/a.ipynb", "/lab/workspaces/viewer", "/lab/api/settings", "/lab/extensions/x/static/a.js"],
    ...["/static/lab/main.js?v=1", "/api/contents/a%20b.ipynb?content=1", "/files/100%25.csv", "/api/sessions?1"],
    ...["/api/kernels", kernel, "/api/me", "/api/kernelspecs", "/kernelspecs/python3/logo-64x64.png", "/favicon.ico"],
  ])("reads %s", async (path) => {
    expect((await ask(path)).status).toBe(200);
    expect((await ask(path, "HEAD")).status).toBe(200);
    expect(upstream.seen.map(({ method, url }) => `${method} ${url}`)).toEqual([`GET ${path}`, `HEAD ${path}`]);
  });

  it.each([
    ["POST", "/api/kernels"],
    ["POST", `${kernel}/interrupt`],
    ["POST", `${kernel}/restart`],
    ["DELETE", kernel],
    ["POST", "/api/sessions"],
    ["PATCH", "/api/sessions/1"],
    ["PUT", "/api/contents/a.ipynb"],
    ["PATCH", "/api/contents/a.ipynb"],
    ["DELETE", "/api/contents/a.ipynb"],
    ["POST", "/api/contents/a.ipynb/checkpoints"],
    ["POST", "/api/contents/a.ipynb/trust"],
    ["POST", "/api/terminals"],
    ["PUT", "/lab/api/workspaces/viewer"],
    ["PUT", "/lab/api/settings/x"],
    ["POST", "/api/shutdown"],
    ["OPTIONS", "/api/contents"],
    ["PROPFIND", "/files/"],
    ["TRACE", "/lab"],
  ])("does not %s %s", async (method, path) => {
    const body = ["POST", "PUT", "PATCH"].includes(method) ? Buffer.from("{}") : undefined;
    const answer = await ask(path, method, { "content-type": "application/json" }, body);
    expect(answer.status).toBe(403);
    expect(upstream.seen).toEqual([]);
    // JupyterLab shows this sentence.
    expect(JSON.parse(answer.body)).toMatchObject({
      message: expect.stringContaining("\nTo work in it, ask Max to make you an editor") as string,
    });
  });

  it("asks nothing whose GET may do something: extensions, conversions, proxies, new terminals", async () => {
    for (const path of [
      ...[
        "/nbconvert/html/a.ipynb",
        "/proxy/8888/",
        "/terminals/new",
        "/terminals/1",
        "/view/a.html",
        "/sluice/report",
      ],
      ...[
        "/lab/api/extensions",
        "/lab/api/build",
        "/lab/api/news",
        "/api/terminals/1",
        `${kernel}/channels`,
        "/logout",
      ],
      ...["/metrics", "/api/events/subscribe", "/lsp/status", "/", "/tree"],
    ]) {
      expect([path, (await ask(path)).status]).toEqual([path, 403]);
    }
    expect(upstream.seen).toEqual([]);
  });

  it("gets no further by another way to write a path", async () => {
    for (const path of [
      ...["/lab/../api/terminals/1", "/static/../proxy/1", "/static/%2e%2e/proxy/1", "/files/%2E%2E%2f%2e%2e%2fproxy"],
      ...["/static/%252e%252e/terminals/new", "/lab/tree/..%5c..%5cproxy", "/API/kernels/x", "/%61pi/terminals/1"],
      ...["/files//proxy", "/static/./../logout", "/lab%2f..%2fproxy"],
    ]) {
      const { status } = await ask(path);
      expect([path, status === 403 || status === 400]).toEqual([path, true]);
    }
    expect(upstream.seen).toEqual([]);
  });

  it("gets no further by a header or a field that names another method", async () => {
    const headers = { "x-http-method-override": "DELETE", "x-method-override": "PUT", "x-http-method": "POST" };
    expect((await ask("/api/contents/a.ipynb?_method=DELETE", "GET", headers)).status).toBe(200);
    expect(upstream.seen[0]?.method).toBe("GET");
    for (const name of Object.keys(headers)) expect(upstream.seen[0]?.headers[name]).toBeUndefined();
  });

  it("cannot hide a second request in the body of a GET", async () => {
    const smuggled = Buffer.from("DELETE /api/contents/a.ipynb HTTP/1.1\r\nHost: x\r\n\r\n");
    expect((await ask("/api/contents", "GET", { "content-length": String(smuggled.length) }, smuggled)).status).toBe(
      403,
    );
    expect((await ask("/api/contents", "GET", { "transfer-encoding": "chunked" }, smuggled)).status).toBe(403);
    expect(upstream.seen).toEqual([]);
  });

  it("cannot use Jupyter's own XSRF token to write", async () => {
    const headers = { cookie: `${cookie}; _xsrf=2|abc`, "x-xsrftoken": "2|abc" };
    expect((await ask("/api/contents/a.ipynb?_xsrf=2|abc", "PUT", headers, Buffer.from("{}"))).status).toBe(403);
    expect((await ask("/api/kernels?_xsrf=2|abc", "POST", headers, Buffer.from("_xsrf=2|abc"))).status).toBe(403);
    expect(upstream.seen).toEqual([]);
  });

  it("opens no WebSocket: no kernel's channels, no terminal, no events, whatever the path", async () => {
    for (const path of [
      ...[`${kernel}/channels`, `${kernel}/channels?session_id=1`, "/terminals/websocket/1", "/api/events/subscribe"],
      ...["/lsp/ws/pylsp", "/api/contents", "/lab"],
    ]) {
      expect([path, (await upgrade(path)).status]).toEqual([path, 403]);
    }
    expect(upstream.seen).toEqual([]);
  });

  it("does not keep the workspace from being idle", async () => {
    await ask("/lab", "GET", { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document", "sec-fetch-site": "none" });
    await ask("/api/contents/a.ipynb", "PUT", {}, Buffer.from("{}"));
    const [row] = await database.db.select().from(workspaces).where(eq(workspaces.id, id));
    expect(row?.lastActivityAt).toBeNull();
  });
});

describe("an editor", () => {
  it("works as the owner does: writes, runs, opens terminals", async () => {
    expect(await comeAs("editor")).toBe("/lab");
    expect((await ask("/api/contents/a.ipynb", "PUT", {}, Buffer.from("{}"))).status).toBe(200);
    expect((await ask("/api/kernels", "POST", {}, Buffer.from("{}"))).status).toBe(200);
    for (const path of [`${kernel}/channels`, "/terminals/websocket/1"]) (await opened(path)).terminate();
  });
});

it("tells JupyterLab why a viewer may only look, and nothing of the kind to an editor", async () => {
  const refusal = async () => (JSON.parse((await ask("/_sluice/access")).body) as { refusal: string | null }).refusal;
  await comeAs("viewer");
  expect(await refusal()).toMatch(/^You are a viewer of .*ask Max to make you an editor\.$/);
  await comeAs("editor");
  expect(await refusal()).toBeNull();
});

describe("what a collaborator has open ends", () => {
  it("when they are taken out: sockets at once, and the cookie opens nothing more", async () => {
    await comeAs("editor");
    const socket = await opened();
    const download = ask("/slow");
    download.catch(() => undefined);
    await expect.poll(() => upstream.seen.some(({ url }) => url === "/slow"), SOON).toBe(true);
    await remove(world.member.ctx, { id, userId: guest().id });
    expect(await closes(socket)).toBe(true);
    await expect(download).rejects.toThrow();
    expect((await ask("/lab")).status).toBe(401);
    expect((await upgrade(`${kernel}/channels`)).status).toBe(401);
    // Invited again, they come by the portal: the old cookie stays what it was.
    await add(world.member.ctx, { id, person: guest().email, role: "editor" });
    expect((await ask("/lab")).status).toBe(401);
  });

  it("when an editor becomes a viewer, who still reads", async () => {
    await comeAs("editor");
    const socket = await opened();
    await add(world.member.ctx, { id, person: guest().email, role: "viewer" });
    expect(await closes(socket)).toBe(true);
    expect((await upgrade(`${kernel}/channels`)).status).toBe(403);
    expect((await ask("/api/contents")).status).toBe(200);
    expect((await ask("/api/contents/a.ipynb", "PUT", {}, Buffer.from("{}"))).status).toBe(403);
  });

  it("when the owner is no longer in the team", async () => {
    await comeAs("editor");
    const socket = await opened();
    await database.db.delete(memberships).where(eq(memberships.userId, world.member.id));
    expect(await closes(socket)).toBe(true);
    expect((await ask("/lab", "GET", { accept: "text/html" })).body).toContain("Ask Max");
    await database.db.insert(memberships).values({ teamId: world.team, userId: world.member.id, role: "member" });
  });

  it("but the owner's stays open meanwhile", async () => {
    await comeAs("editor");
    cookie = (await enter(world.member)).cookie;
    const socket = await opened();
    await remove(world.member.ctx, { id, userId: guest().id });
    expect(await closesWithin(socket, 300)).toBe(false);
    socket.terminate();
  });
});
