/** A real JupyterLab in its sandbox behind the gateway: what a notebook in the browser does, without the browser. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { WebSocket } from "ws";
import { workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { waitForServer } from "#server/jupyter/wait-for-server.ts";
import { LocalLauncher } from "#server/launchers/local/local-launcher.ts";
import { makeTestState, type TestState } from "#server/launchers/local/testing.ts";
import { aWorkspaceSpec } from "#server/launchers/testing.ts";
import { makeWorkspace, makeWorld, type Person } from "#server/services/testing.ts";
import { handover } from "#server/services/workspace/handover.ts";
import { add } from "#server/services/workspace-collaborator/add.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { gatewayOptions, openSocket, send } from "./testing.ts";

let state: TestState;
let database: TestDatabase;
let launcher: LocalLauncher;
let gateway: Gateway;
let id: string;
let host: string;
let cookie: string;
let viewersCookie: string;

beforeAll(async () => {
  state = await makeTestState();
  process.env.SLUICE_GATEWAY_URL = "http://localhost:3002";
  resetEnv();
  database = await useTestDatabase();
  const world = await makeWorld(database.db);
  id = (await makeWorkspace(world, { owner: world.member })).id;
  await add(world.member.ctx, { id, person: world.outsider.email, role: "viewer" });
  host = `${id}.localhost:3002`;
  launcher = new LocalLauncher({ stateDir: state.stateDir, wheel: undefined });
  const spec = aWorkspaceSpec({ id, publicUrl: `http://${host}` });
  const { serverToken } = spec;
  const { endpoint } = await launcher.ensure(
    spec,
    { started: () => undefined, done: () => undefined, log: () => undefined },
    new AbortController().signal,
  );
  const stillRuns = async () => (await launcher.observe(id)).state === "running";
  const signal = new AbortController().signal;
  await waitForServer({ endpoint, token: serverToken }, { stillRuns, timeoutMs: 60_000, signal });
  await database.db.update(workspaces).set({ endpoint, serverToken }).where(eq(workspaces.id, id));
  gateway = await startGateway(database, gatewayOptions);
  cookie = await enter(world.member);
  viewersCookie = await enter(world.outsider);
}, 240_000);

async function enter(person: Person): Promise<string> {
  const way = new URL((await handover(person.ctx, { id })).url);
  const entered = await send(gateway.port, { host, path: `${way.pathname}${way.search}` });
  return (entered.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
}

afterAll(async () => {
  await gateway.close();
  await launcher.remove(id);
  await database.drop();
  await state.drop();
});

/** Runs code over a kernel's WebSocket; gives what it printed and how long the first reply took. */
async function execute(
  socket: WebSocket,
  code: string,
  metadata: Record<string, string> = {},
): Promise<{ printed: string; displayedBytes: number; ms: number }> {
  const messageId = randomUUID();
  const header = {
    msg_id: messageId,
    msg_type: "execute_request",
    username: "",
    session: "test",
    version: "5.3",
    date: "",
  };
  const content = { code, silent: false, store_history: false, user_expressions: {}, allow_stdin: false };
  const started = performance.now();
  let printed = "";
  let displayedBytes = 0;
  let ms: number | undefined;
  let idle = false;
  return await new Promise((resolve) => {
    const hear = (data: Buffer) => {
      const message = JSON.parse(data.toString()) as {
        header: { msg_type: string };
        parent_header: { msg_id?: string };
        content: { text?: string; execution_state?: string; data?: Record<string, string> };
      };
      if (message.parent_header.msg_id !== messageId) return;
      if (message.header.msg_type === "stream") printed += message.content.text ?? "";
      if (message.header.msg_type === "display_data")
        displayedBytes += message.content.data?.["text/plain"]?.length ?? 0;
      if (message.header.msg_type === "execute_reply") ms = performance.now() - started;
      // Reply and output come on channels of their own, in any order; the output ends when the kernel says idle.
      idle ||= message.content.execution_state === "idle";
      if (ms === undefined || !idle) return;
      socket.removeListener("message", hear);
      resolve({ printed: printed.trim(), displayedBytes, ms });
    };
    socket.on("message", hear);
    socket.send(JSON.stringify({ header, parent_header: {}, metadata, content, channel: "shell", buffers: [] }));
  });
}

/** Starts a kernel as the owner; gives its WebSocket. */
async function openKernel(): Promise<WebSocket> {
  const headers = { cookie, origin: `http://${host}`, "content-type": "application/json" };
  const body = Buffer.from(JSON.stringify({ name: "python3" }));
  const made = await send(gateway.port, { host, path: "/api/kernels", method: "POST", headers, body });
  expect(made.status).toBe(201);
  const kernel = JSON.parse(made.body) as { id: string };
  const path = `/api/kernels/${kernel.id}/channels`;
  const { socket, status } = await openSocket(gateway.port, { host, path, headers });
  expect(status).toBe(101);
  if (socket === undefined) throw new Error("not open");
  return socket;
}

it("serves JupyterLab, and a notebook's kernel without Nagle's delay", async () => {
  const lab = await send(gateway.port, { host, path: "/lab", headers: { cookie, accept: "text/html" } });
  expect(lab.status).toBe(200);
  expect(lab.body).toContain("jupyter-config-data");
  // The page must not carry the server's token to the browser: the cookie alone lets a person in.
  const [row] = await database.db.select().from(workspaces).where(eq(workspaces.id, id));
  expect(lab.body).not.toContain(row?.serverToken);

  const socket = await openKernel();
  expect((await execute(socket, "print(6 * 7)")).printed).toBe("42");
  const times: number[] = [];
  for (let turn = 0; turn < 30; turn++) times.push((await execute(socket, "1")).ms);
  // With the delay no message at all is quicker than 40 ms.
  expect(Math.min(...times)).toBeLessThan(30);
  socket.terminate();
}, 60_000);

it("carries kernel messages of 100 MB both ways, and pings whoever follows the server's events", async () => {
  const headers = { cookie, origin: `http://${host}` };
  const events = await openSocket(gateway.port, { host, path: "/api/events/subscribe", headers });
  let pings = 0;
  events.socket?.on("ping", () => pings++);
  const socket = await openKernel();
  const bytes = 100_000_000;
  expect((await execute(socket, "print(6 * 7)", { large: "x".repeat(bytes) })).printed).toBe("42");
  const display = `get_ipython().display_pub.publish({"text/plain": "x" * ${bytes}})`;
  expect((await execute(socket, display)).displayedBytes).toBe(bytes);
  // A longer one is refused.
  const ended = once(socket, "close");
  socket.send("x".repeat(101 * 2 ** 20));
  // Jupyter closes its socket with the message unread: the code can be lost with the connection.
  expect([1009, 1006]).toContain((await ended)[0]);
  await expect.poll(() => pings, { timeout: 45_000, interval: 250 }).toBeGreaterThan(0);
  events.socket?.terminate();
}, 120_000);

it("lets a viewer see what the owner saved, and change and run nothing", async () => {
  const headers = { cookie: viewersCookie, origin: `http://${host}`, "content-type": "application/json" };
  const get = (path: string) => send(gateway.port, { host, path, headers });
  const saved = Buffer.from(JSON.stringify({ type: "file", format: "text", content: "seen" }));
  const put = (by: string) =>
    send(gateway.port, {
      ...{ host, path: "/api/contents/notes.txt", method: "PUT", body: saved },
      headers: { ...headers, cookie: by },
    });
  expect((await put(cookie)).status).toBe(201);
  expect((await put(viewersCookie)).status).toBe(403);
  const lab = await get("/lab/workspaces/viewer");
  expect(lab.status).toBe(200);
  // What the page needs to show itself and the files.
  const script = /src="(\/static\/lab\/[^"]+)"/.exec(lab.body)?.[1] ?? "none";
  const read = [script, "/lab/api/settings", "/lab/api/workspaces/viewer", "/api/kernelspecs", "/api/me"];
  for (const path of [...read, "/api/sessions", "/api/contents"]) {
    expect([path, (await get(path)).status]).toEqual([path, 200]);
  }
  expect(JSON.parse((await get("/api/contents/notes.txt?content=1")).body)).toMatchObject({ content: "seen" });
  expect((await get("/files/notes.txt")).body).toBe("seen");
  const kernels = JSON.parse((await get("/api/kernels")).body) as { id: string }[];
  const path = `/api/kernels/${kernels[0]?.id ?? randomUUID()}/channels`;
  expect((await openSocket(gateway.port, { host, path, headers })).status).toBe(403);
  expect((await openSocket(gateway.port, { host, path: "/terminals/websocket/1", headers })).status).toBe(403);
  expect(
    JSON.parse((await send(gateway.port, { host, path: "/api/terminals", headers: { ...headers, cookie } })).body),
  ).toEqual([]);
}, 30_000);
