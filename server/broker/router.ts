/** A small HTTP server over one table of routes: bearer authentication, bounded bodies, one shape of errors. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { anonymous, type Principal } from "#server/auth/principal.ts";
import { principalFromCredential } from "#server/auth/principal-from-credential.ts";
import { retryAfterSeconds } from "#server/auth/token-limit.ts";
import type { Context } from "#server/context.ts";
import type { Database } from "#server/db/client.ts";
import { errorBody, httpStatus, SluiceError, toSluiceError } from "#server/errors.ts";
import { readBytes } from "#server/http/read-bytes.ts";
import { type Logger, traceIdFrom } from "#server/log.ts";
import { refuseUnstorable } from "#server/storable.ts";

const MAX_BODY = 256 * 1024;

export type Call = {
  params: Record<string, string>;
  query: URLSearchParams;
  /** Parsed JSON; undefined without a body. */
  body: unknown;
  /** Aborts when the client leaves before it has its answer. */
  signal: AbortSignal;
};

export type Route = {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** `/v1/leases/:id/sessions` */
  path: string;
  /** workspace: needs a workspace's credential; none: the service checks what it needs itself. */
  auth: "workspace" | "none";
  /** The largest body, bytes, where the usual one does not do. */
  maxBody?: number;
  handle: (ctx: Context, call: Call) => Promise<unknown>;
};

/** Text instead of JSON, for metrics. */
export class Text {
  readonly type: string;
  readonly text: string;
  constructor(type: string, text: string) {
    this.type = type;
    this.text = text;
  }
}

/** Status in the metrics for a client that leaves before it has its answer, as in nginx. */
const CLIENT_LEFT = 499;

export type Observed = { route: string; method: string; status: number; seconds: number };

export type RouterOptions = {
  routes: Route[];
  db: Database;
  log: Logger;
  onDone?: (observed: Observed) => void;
};

export function createRouter(options: RouterOptions): (request: IncomingMessage, response: ServerResponse) => void {
  const table = options.routes.map((route) => ({ route, pattern: patternOf(route.path) }));
  return (request, response) => {
    void answer(table, options, request, response);
  };
}

type Table = { route: Route; pattern: RegExp }[];

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/:([a-z]+)/gi, "(?<$1>[^/]+)")}$`, "i");
}

async function answer(
  table: Table,
  options: RouterOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const started = performance.now();
  const traceId = traceIdFrom(header(request, "traceparent"));
  let found: Table[number] | undefined;
  let status = 200;
  const left = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) left.abort();
  });
  try {
    const url = addressOf(request);
    const matching = table.filter(({ pattern }) => pattern.test(url.pathname));
    found = matching.find(({ route }) => route.method === request.method);
    if (found === undefined) throw notFound(matching.length > 0, url.pathname);
    const principal = await principalOf(found.route, options.db, request);
    const body = await readBody(request, found.route.maxBody ?? MAX_BODY);
    const params = decodeParams(found.pattern.exec(url.pathname)?.groups ?? {});
    const ctx: Context = { db: options.db, principal, now: () => new Date(), traceId };
    const result = await found.route.handle(ctx, { params, query: url.searchParams, body, signal: left.signal });
    send(response, 200, traceId, result);
  } catch (error) {
    const known = toSluiceError(error);
    status = httpStatus(known.code);
    const level = known.code === "internal" && !(left.signal.aborted && isAbort(error)) ? "error" : "debug";
    options.log[level]({ err: error, traceId, path: found?.route.path }, "request failed");
    send(response, status, traceId, errorBody(known), retryAfterHeader(known));
  }
  if (left.signal.aborted) status = CLIENT_LEFT;
  const seconds = (performance.now() - started) / 1000;
  options.onDone?.({ route: found?.route.path ?? "none", method: request.method ?? "", status, seconds });
}

/** When to ask again, where that helps. */
function retryAfterHeader(error: SluiceError): Record<string, string> {
  if (error.code === "unavailable") return { "retry-after": "2" };
  return error.code === "too-many" ? { "retry-after": String(retryAfterSeconds(error)) } : {};
}

/** Whether an error says only that the client has left: by the call's signal, or by the body that ends early. */
function isAbort(error: unknown): boolean {
  return (
    error instanceof Error && (error.name === "AbortError" || (error as NodeJS.ErrnoException).code === "ECONNRESET")
  );
}

/** The address that was asked for; a NUL in it or in the body could not be stored and is refused at the door. */
function addressOf(request: IncomingMessage): URL {
  const text = request.url ?? "/";
  if (!URL.canParse(text, "http://broker") || /%00/.test(text)) {
    throw new SluiceError("invalid", "The address is not well-formed.");
  }
  return new URL(text, "http://broker");
}

function notFound(otherMethod: boolean, path: string): SluiceError {
  return new SluiceError(
    "not-found",
    otherMethod
      ? `${path} does not take this method.`
      : `There is no ${path} here. This is Sluice's broker; people use the portal.`,
  );
}

async function principalOf(route: Route, db: Database, request: IncomingMessage): Promise<Principal> {
  if (route.auth === "none") return anonymous;
  const principal = await principalFromCredential(db, header(request, "authorization"));
  if (principal.kind !== "workspace") {
    throw new SluiceError(
      "unauthenticated",
      "This workspace's credential is not valid (any more). Restart the workspace.",
    );
  }
  return principal;
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function decodeParams(groups: Record<string, string>): Record<string, string> {
  try {
    return Object.fromEntries(Object.entries(groups).map(([name, value]) => [name, decodeURIComponent(value)]));
  } catch {
    throw new SluiceError("invalid", "The address is not well-formed.");
  }
}

async function readBody(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const bytes = await readBytes(request, maxBytes);
  if (bytes.byteLength === 0) return undefined;
  const body = parseJson(bytes.toString("utf8"));
  refuseUnstorable(body);
  return body;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SluiceError("invalid", "The request is not JSON.");
  }
}

function send(
  response: ServerResponse,
  status: number,
  traceId: string,
  result: unknown,
  headers: Record<string, string> = {},
): void {
  if (response.headersSent || response.destroyed) return;
  const text = result instanceof Text ? result : new Text("application/json; charset=utf-8", JSON.stringify(result));
  const bytes = Buffer.from(text.text);
  response.writeHead(status, {
    "content-type": text.type,
    "content-length": bytes.length,
    "cache-control": "no-store",
    "x-trace-id": traceId,
    ...headers,
  });
  response.end(bytes);
}
