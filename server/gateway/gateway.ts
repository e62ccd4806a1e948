/**
 * The browser's way into a workspace, on the workspace's own hostname. It holds no rules of its own: who may pass is
 * `authorize()`, where to is the workspace's row, and everything a request says about either is thrown away.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { eq } from "drizzle-orm";
import { createProxyServer, type ProxyServer } from "http-proxy-3";
import { systemContext } from "#server/context.ts";
import { ACCESS_PATH, HANDOVER_PATH, REACH_PATH } from "#server/contracts/gateway-paths.ts";
import type { OpenDatabase } from "#server/db/client.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { refuseRequest } from "#server/http/end-socket.ts";
import { keptConnections } from "#server/http/kept-connections.ts";
import { limitBody } from "#server/http/limit-body.ts";
import { addressOf, WorkspaceAgent } from "#server/jupyter/endpoint.ts";
import { listen } from "#server/listen.ts";
import { createLive } from "#server/live.ts";
import type { Logger } from "#server/log.ts";
import { VERSION } from "#server/version.ts";
import { within } from "#server/within.ts";
import { Activity } from "./activity.ts";
import { Connections } from "./connections.ts";
import { secretsFrom, setCookie } from "./cookies.ts";
import { checkOrigin, checkTarget, type GatewayAddress, originOf, workspaceOfHost } from "./hosts.ts";
import { type Problem, problemHeaders, problemPage } from "./pages.ts";
import { passAnswer } from "./pass-answer.ts";
import { accessEnded, badAnswer, notAnswering, notRunning, onlyLooking, problemOf } from "./problems.ts";
import { guardResponse, prepareRequest } from "./proxy-headers.ts";
import { isReading } from "./reading.ts";
import { type Admission, admit, enter, workspaceExists } from "./sessions.ts";

/** How long a request waits for the database before it is told to try again. */
const DATABASE_TIMEOUT_MS = 4_000;
/** How long a request to the gateway itself has for its end. */
const BODYLESS_MS = 5_000;
/** Where to sign in again. JupyterLab's extension reads it (native/python/data/share/jupyter/labextensions). */
const SIGN_IN_HEADER = "x-sluice-sign-in";
/** On the hostname of a workspace. */
const OWN_PATHS = new Set([ACCESS_PATH, HANDOVER_PATH, REACH_PATH]);

export type GatewayOptions = GatewayAddress & { portalUrl: string; listen: string; port: number; log: Logger };

export type Gateway = { port: number; connections: () => number; close: () => Promise<void> };

/** Starts the gateway; settles when it listens. */
export async function startGateway(database: OpenDatabase, options: GatewayOptions): Promise<Gateway> {
  const live = createLive(database.sql);
  const handler = new Handler(database, options, new Connections(database.db, live, options.log));
  const server = createServer({ ...keptConnections, requestTimeout: 0, noDelay: true }, (request, response) => {
    void handler.http(request, response);
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    void handler.upgrade(request, socket, head);
  });
  const listening = await listen(server, { port: options.port, host: options.listen });
  return {
    port: listening.port,
    connections: () => handler.connections.size,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.once("close", () => resolve()));
      listening.close();
      await handler.connections.close();
      server.closeAllConnections();
      handler.close();
      await live.close();
      await closed;
    },
  };
}

type Target = Admission & { endpoint: string };

class Handler {
  readonly connections: Connections;
  readonly #database: OpenDatabase;
  readonly #options: GatewayOptions;
  readonly #secure: boolean;
  readonly #agent = new WorkspaceAgent({ keepAlive: true, maxFreeSockets: 64 });
  readonly #web: ProxyServer;
  readonly #sockets: ProxyServer;
  readonly #activity: Activity;

  constructor(database: OpenDatabase, options: GatewayOptions, connections: Connections) {
    this.#database = database;
    this.#options = options;
    this.#secure = options.url.startsWith("https:");
    this.connections = connections;
    this.#activity = new Activity((id, lastActivityAt) =>
      database.db.update(workspaces).set({ lastActivityAt }).where(eq(workspaces.id, id)).execute(),
    );
    // The Host header stays the workspace's own, so that Jupyter's own check of the Origin holds too.
    const common = { changeOrigin: false, xfwd: false };
    this.#web = createProxyServer({ ...common, agent: this.#agent, selfHandleResponse: true });
    const refuse = (request: IncomingMessage, response: ServerResponse) =>
      answerProblem(
        request,
        response,
        badAnswer(options.portalUrl, workspaceOfHost(request.headers.host, options) ?? ""),
      );
    this.#web.on("proxyReq", (toServer, request, response) => {
      // An upgrade that nobody asked for ends the connection without an error.
      toServer.once("close", () => {
        if (!response.headersSent) refuse(request, response);
      });
    });
    this.#web.on("proxyRes", (answer, request, response) => {
      if (!passAnswer(answer, response)) refuse(request, response);
    });
    const upgradeAgent = new WorkspaceAgent({ keepAlive: false });
    this.#sockets = createProxyServer({ ...common, ws: true, agent: upgradeAgent });
    this.#sockets.on("proxyReqWs", (toServer, _, socket) => {
      toServer.once("upgrade", (answer, from) => {
        guardResponse(answer.headers);
        // Not before the proxy has piped the two: who listens first takes bytes that came with the answer.
        process.nextTick(() => connections.upgraded(socket, from));
      });
      // In place of the proxy's listener, which is added after this one: it passes such an answer on unguarded, and
      // keeps what the client does not read.
      process.nextTick(() => {
        toServer.removeAllListeners("response");
        toServer.once("response", (answer) => {
          const { statusCode: status = 502 } = answer;
          answer.destroy();
          refuseRequest(socket, { status: status >= 400 && status < 600 ? status : 502 });
        });
      });
    });
    // Without a listener the proxy throws, and a browser that resets one connection would end this process.
    for (const proxy of [this.#web, this.#sockets]) {
      proxy.on("error", (error) => options.log.debug({ err: error }, "connection broken"));
    }
  }

  close(): void {
    this.#activity.close();
    this.#agent.destroy();
  }

  async http(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const workspaceId = workspaceOfHost(request.headers.host, this.#options);
    try {
      const target = checkTarget(request);
      const path = target.split("?")[0] ?? "";
      const isOwn = workspaceId === undefined || OWN_PATHS.has(path);
      if (isOwn && !(await endsWithoutBody(request, response))) return;
      if (workspaceId === undefined) return this.#withoutWorkspace(target, response);
      if (path === REACH_PATH) return void response.writeHead(204, problemHeaders).end();
      if (path === ACCESS_PATH) return await this.#access(request, response, workspaceId);
      if (isOwn) return await this.#enter(request, response, workspaceId);
      const found = await this.#admit(request, workspaceId, "http");
      if ("problem" in found) return answerProblem(request, response, found.problem);
      const forget = this.connections.add(request.socket, found.target);
      if (forget === undefined) return;
      response.once("close", forget);
      prepareRequest(request, found.target.workspace.serverToken ?? "");
      this.#web.web(request, response, { target: targetOf(found.target) }, (error) => {
        this.#options.log.debug({ err: error, workspaceId }, "workspace did not answer");
        const problem = notAnswering(found.target.workspace.name, this.#options.portalUrl, workspaceId);
        answerProblem(request, response, problem);
      });
    } catch (error) {
      answerProblem(request, response, await this.#problem(error, workspaceId));
    }
  }

  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // A client that leaves while we look must not end the process.
    socket.on("error", () => socket.destroy());
    const workspaceId = workspaceOfHost(request.headers.host, this.#options);
    try {
      checkTarget(request);
      if (workspaceId === undefined) throw new SluiceError("not-found", "No workspace has this hostname.");
      if (request.headers.upgrade?.toLowerCase() !== "websocket") {
        throw new SluiceError("invalid", "Only WebSockets are known here.");
      }
      const found = await this.#admit(request, workspaceId, "upgrade");
      if ("problem" in found) return refuseUpgrade(socket, found.problem);
      if (this.connections.add(socket, found.target) === undefined) return;
      prepareRequest(request, found.target.workspace.serverToken ?? "");
      this.#sockets.ws(request, socket, head, { target: targetOf(found.target) }, () => {
        // Text after the upgrade would be read as a frame.
        if (this.connections.isUpgraded(socket)) socket.destroy();
        else refuseUpgrade(socket, notAnswering(found.target.workspace.name, this.#options.portalUrl, workspaceId));
      });
    } catch (error) {
      refuseUpgrade(socket, await this.#problem(error, workspaceId));
    }
  }

  /** Checks where the request comes from, who it is, and whether there is something to pass it to. */
  async #admit(
    request: IncomingMessage,
    workspaceId: string,
    kind: "http" | "upgrade",
  ): Promise<{ target: Target } | { problem: Problem }> {
    checkOrigin(request, originOf(workspaceId, this.#options), kind);
    const secrets = secretsFrom(request.headers.cookie, this.#secure);
    let admission: Admission;
    try {
      admission = await inTime(admit(this.#database.db, workspaceId, secrets));
    } catch (error) {
      const problem = await this.#problem(error, workspaceId);
      const isOfLab = kind === "http" && request.url?.startsWith("/api/") === true;
      return { problem: (isOfLab ? accessEnded(problem) : undefined) ?? problem };
    }
    const { workspace } = admission;
    const { endpoint, serverToken } = workspace;
    const runs = workspace.desired === "running" && workspace.observed === "running";
    if (!runs || endpoint === null || serverToken === null) {
      return { problem: notRunning(workspace, this.#options.portalUrl) };
    }
    if (!admission.mayWork && !isReading(request)) throw onlyLooking(admission);
    // Who looks keeps nothing running.
    if (admission.mayWork && isDoneByPerson(request)) this.#activity.record(workspaceId);
    return { target: { ...admission, endpoint } };
  }

  /** The one-time code from the portal becomes a cookie of this hostname. */
  async #enter(request: IncomingMessage, response: ServerResponse, workspaceId: string): Promise<void> {
    const url = new URL(request.url ?? "/", originOf(workspaceId, this.#options));
    const prefetch = request.headers["sec-purpose"]?.includes("prefetch") === true;
    const embedded = (request.headers["sec-fetch-dest"] ?? "document") !== "document";
    if (request.method !== "GET" || prefetch || embedded) {
      throw new SluiceError("forbidden", "A workspace is opened by a link from the portal.");
    }
    const code = url.searchParams.get("code") ?? "";
    if (!/^[A-Za-z0-9_-]{43}$/.test(code)) throw new SluiceError("forbidden", "This link is not complete.");
    const secret = await inTime(enter(systemContext(this.#database.db), { workspaceId, code }));
    const { mayWork } = await inTime(admit(this.#database.db, workspaceId, [secret]));
    response.writeHead(303, {
      ...problemHeaders,
      // A viewer cannot have the owner's open notebooks, whose kernels would be asked for.
      location: mayWork ? "/lab" : "/lab/workspaces/viewer",
      "set-cookie": setCookie(secret, this.#secure),
      "referrer-policy": "no-referrer",
    });
    response.end();
  }

  async #access(request: IncomingMessage, response: ServerResponse, workspaceId: string): Promise<void> {
    checkOrigin(request, originOf(workspaceId, this.#options), "http");
    const secrets = secretsFrom(request.headers.cookie, this.#secure);
    const admission = await inTime(admit(this.#database.db, workspaceId, secrets));
    const refusal = admission.mayWork ? null : onlyLooking(admission).message;
    response.writeHead(200, { ...problemHeaders, "content-type": "application/json" });
    response.end(JSON.stringify({ refusal, theme: admission.theme }));
  }

  #withoutWorkspace(target: string, response: ServerResponse): void {
    if (target === "/healthz") {
      response.writeHead(200, { "content-type": "application/json", "cache-control": "no-store" });
      response.end(JSON.stringify({ status: "ok", version: VERSION, connections: this.connections.size }));
      return;
    }
    throw new SluiceError("not-found", "No workspace has this hostname.");
  }

  async #problem(error: unknown, workspaceId: string | undefined): Promise<Problem> {
    const problem = problemOf(error, this.#options.portalUrl, workspaceId);
    if (problem.status === 500) this.#options.log.error({ err: error, workspaceId }, "request failed");
    // Without a session, a workspace that does not exist is said not to exist: its id is no secret to its owner.
    if (problem.status === 401 && workspaceId !== undefined) {
      const exists = await workspaceExists(this.#database.db, workspaceId).catch(() => true);
      if (!exists) return problemOf(new SluiceError("not-found", ""), this.#options.portalUrl, undefined);
    }
    return problem;
  }
}

/** A workspace's server as a target of the proxy. */
function targetOf({ endpoint }: Target) {
  return { protocol: "http:", ...addressOf(endpoint) };
}

/**
 * Whether somebody is at work: a page was opened, something was saved or started. A tab that is only open asks for
 * the lists of kernels and terminals for ever, and what runs in a notebook is seen by its kernel.
 */
function isDoneByPerson(request: IncomingMessage): boolean {
  if (request.headers.upgrade !== undefined) return false;
  return (
    !["GET", "HEAD", "OPTIONS"].includes(request.method ?? "GET") || request.headers["sec-fetch-mode"] === "navigate"
  );
}

/** The database may be away for a moment; nobody waits for it without end. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  return await within(DATABASE_TIMEOUT_MS, work, () => {
    throw new SluiceError("unavailable", "The database cannot be reached just now. This page tries again by itself.");
  });
}

function answerProblem(request: IncomingMessage, response: ServerResponse, problem: Problem): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const sentence = `${problem.title}. ${problem.text}`;
  // JupyterLab shows `message` without wrapping it. Our extension links an expired session to the portal.
  const isSignedOut = problem.code === "unauthenticated";
  const lines = (isSignedOut ? sentence : problem.text).replaceAll(/(?<=[.:]) /g, "\n");
  const html = (request.headers.accept ?? "").includes("text/html");
  const body = html
    ? problemPage(problem)
    : JSON.stringify({ error: { code: problem.code, message: sentence }, message: lines });
  const type = html ? "text/html; charset=utf-8" : "application/json";
  // What the client still sends is not wanted; the connection is not used again.
  response.writeHead(problem.status, {
    ...problemHeaders,
    "content-type": type,
    connection: "close",
    ...(isSignedOut && problem.link && { [SIGN_IN_HEADER]: problem.link.href }),
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

/**
 * Whether a request has come to its end without a body; the client gets 413 for one. For the gateway's own addresses:
 * a workspace's requests are passed on as they come.
 */
async function endsWithoutBody(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  limitBody(request, response, 0);
  request.resume();
  return await once(request, "end", { signal: AbortSignal.timeout(BODYLESS_MS) }).then(
    () => true,
    () => {
      // A request without an end would keep its connection.
      request.destroy();
      return false;
    },
  );
}

function refuseUpgrade(socket: Duplex, { status, title, text }: Problem): void {
  refuseRequest(socket, { status, reason: "Refused", body: `${title}. ${text}\n` });
}
