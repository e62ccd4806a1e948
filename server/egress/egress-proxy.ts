/**
 * The egress proxy of one workspace: HTTP (absolute form and CONNECT) and SOCKS5 on one Unix socket. The proxy runs
 * outside the workspace's network namespace, resolves names and makes connections within the team's policy. A client is
 * a hostile tenant: connections, openings and lookups are bounded, and no answer is stored.
 */
import {
  Agent,
  createServer as createHttpServer,
  type Server as HttpServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { connect, createServer, type LookupFunction, type Server, type Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import { SluiceError } from "#server/errors.ts";
import { endSocket, refuseRequest } from "#server/http/end-socket.ts";
import { withoutHops } from "#server/http/hop-headers.ts";
import type { RefusedConnection } from "#server/services/workspace/record-refusals.ts";
import { within } from "#server/within.ts";
import { WorkQueue } from "#server/work-queue.ts";
import type { AddressRules } from "./addresses.ts";
import { canonicalHost, closedHere, type Destination, type EgressDecision, hostAndPort, judge } from "./judge.ts";
import { answerSocks, REPLY, readSocksRequest, SocksError } from "./socks.ts";
import { throughUpstream, type Upstream } from "./upstream.ts";

/** Maximum open connections of one workspace; further connections are closed at once. */
export const MOST_CONNECTIONS = 256;
/** Default time for the whole opening of a connection: the request head, or the SOCKS5 greeting and request. */
const OPENING_MS = 10_000;
const CONNECT_MS = 30_000;
/** A resolver that does not answer holds no connection longer than this. */
const RESOLVE_MS = 10_000;
const KEEP_ALIVE_MS = 15_000;
/** A connection without data for this time is closed. */
const IDLE_MS = 30 * 60_000;
/** Bounds on the lookups of one workspace, so that one workspace cannot occupy a slow resolver. */
const LOOKUPS = {
  maxRunning: 4,
  maxWaiting: MOST_CONNECTIONS,
  refusal: "Too many host names are being resolved for this workspace. Try again in a moment.",
  retryAfterSeconds: 1,
};

export type EgressOptions = {
  rules: AddressRules;
  /** Called for each connection, so that a change applies to the next connection. */
  policy: () => Promise<EgressPolicy> | EgressPolicy;
  gpuServers: () => ReadonlySet<string>;
  indexes: ReadonlySet<string>;
  /** The proxy of the host, if the host has one. */
  upstream?: Upstream | undefined;
  onRefused?: (refused: RefusedConnection) => void;
  resolve?: Parameters<typeof judge>[0]["resolve"];
  openingMs?: number;
};

export type EgressProxy = { server: Server; close: () => void };

/** A server that is not listening yet; `close` ends all its connections. */
export function createEgressProxy(options: EgressOptions): EgressProxy {
  return new Egress(options);
}

/** HTTP status and message of a connection that was not made. */
class Unreachable extends Error {
  readonly status: 400 | 403 | 502 | 504;

  constructor(status: 400 | 403 | 502 | 504, sentence: string) {
    super(sentence);
    this.status = status;
  }
}

type Route = {
  destination: Destination;
  lookup: LookupFunction | undefined;
  /** GPU servers and package indexes may have an address of this host. */
  mayEndHere: boolean;
};

class Egress implements EgressProxy {
  readonly server: Server;
  readonly #http: HttpServer;
  readonly #options: EgressOptions;
  readonly #open = new Set<Duplex>();
  readonly #lookups = new WorkQueue(LOOKUPS);
  readonly #forwarding = new WeakSet<Duplex>();
  /** Deadlines of connections without a complete opening. */
  readonly #openings = new WeakMap<Duplex, NodeJS.Timeout>();

  constructor(options: EgressOptions) {
    this.#options = options;
    // This server does not listen itself, so the timeouts of its own for headers never run.
    this.#http = createHttpServer({ requestTimeout: 0, headersTimeout: 0 });
    this.#http.on("request", (request: IncomingMessage, response: ServerResponse) => {
      void this.#forward(request, response);
    });
    this.#http.on("connect", (request: IncomingMessage, socket: Socket, head: Buffer) => {
      void this.#tunnel(request, socket, head);
    });
    this.#http.on("clientError", (_error, socket) => socket.destroy());
    this.server = createServer({ allowHalfOpen: true }, (socket) => this.#greet(socket));
    this.server.maxConnections = MOST_CONNECTIONS;
  }

  close(): void {
    this.server.close();
    for (const socket of this.#open) socket.destroy();
  }

  /** The first byte tells SOCKS5 from HTTP. */
  #greet(socket: Socket): void {
    this.#keep(socket);
    socket.on("timeout", () => socket.destroy());
    // A deadline, because a client may send its opening byte by byte.
    const deadline = setTimeout(() => socket.destroy(), this.#options.openingMs ?? OPENING_MS);
    this.#openings.set(socket, deadline);
    socket.once("close", () => clearTimeout(deadline));
    socket.once("readable", () => {
      const first = socket.read(1) as Buffer | null;
      if (first === null) return socket.destroy();
      socket.unshift(first);
      if (first[0] === 5) return void this.#socks(socket);
      this.#http.emit("connection", socket);
    });
  }

  /** `close` destroys the socket with the proxy. The error handler keeps a peer's error from ending the process. */
  #keep(socket: Duplex): void {
    this.#open.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#open.delete(socket));
  }

  #opened(socket: Duplex): void {
    clearTimeout(this.#openings.get(socket));
  }

  async #socks(client: Socket): Promise<void> {
    try {
      const { command, ...destination } = await readSocksRequest(client);
      this.#opened(client);
      if (command === "resolve") {
        const isKnown = await this.#hasAddress(destination);
        answerSocks(client, isKnown ? REPLY.done : REPLY.hostUnreachable);
        return endSocket(client);
      }
      const server = await this.#connect(client, destination);
      answerSocks(client, REPLY.done);
      this.#join(client, server, this.#idleMs(destination));
    } catch (error) {
      if (error instanceof Unreachable) {
        answerSocks(client, error.status === 403 ? REPLY.notAllowed : REPLY.hostUnreachable);
      } else if (!(error instanceof SocksError)) {
        answerSocks(client, REPLY.failed);
      }
      endSocket(client);
    }
  }

  async #tunnel(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    this.#opened(client);
    try {
      const destination = destinationOf(`http://${request.url ?? ""}`, undefined);
      const server = await this.#connect(client, destination);
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      if (head.length > 0) client.unshift(head);
      this.#join(client, server, this.#idleMs(destination));
    } catch (error) {
      const { status, message } = unreachable(error);
      // Most programs show the reason of the status line and not the body.
      const reason = message.replaceAll(/[^ -~]/g, "?");
      refuseRequest(client, { status, reason, body: `${message}\n` });
    }
  }

  /** A plain `http://` request, which clients send to a proxy with the whole URL in its first line. */
  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#opened(request.socket);
    // One request for each connection: the number of connections bounds the number of requests.
    response.shouldKeepAlive = false;
    if (this.#forwarding.has(request.socket)) return void request.socket.destroy();
    this.#forwarding.add(request.socket);
    try {
      const url = URL.parse(request.url ?? "");
      if (url?.protocol !== "http:") {
        throw new Unreachable(400, "This is the egress proxy of a workspace. Use http:// URLs or CONNECT.");
      }
      const route = await this.#route(destinationOf(url.href, 80));
      // A client that left meanwhile sends no further `close` event, which would end the request.
      if (response.destroyed) return;
      const { destination } = route;
      const { upstream } = this.#options;
      const isThrough = upstream?.covers(destination.host) === true;
      const left = new AbortController();
      response.once("close", () => left.abort());
      const direct = isThrough ? undefined : await this.#dial(route, left.signal);
      direct?.setTimeout(0);
      const onward = httpRequest({
        ...(direct === undefined ? upstream?.address : { createConnection: () => direct }),
        method: request.method,
        path: isThrough ? url.href : `${url.pathname}${url.search}`,
        headers: { ...withoutHops(request.headers), ...(isThrough ? upstream.headers : {}), host: url.host },
        setHost: false,
        ...(direct === undefined && { agent: new Agent({ keepAlive: false }) }),
        timeout: direct === undefined ? CONNECT_MS : IDLE_MS,
      });
      response.once("close", () => onward.destroy());
      onward.on("timeout", () => onward.destroy(new Unreachable(504, `${destination.host} does not answer.`)));
      onward.once("socket", (socket) => socket.once("connect", () => onward.setTimeout(IDLE_MS)));
      onward.on("error", () => undefined);
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        onward.once("response", resolve).once("error", reject);
        // An upgrade without a request for one ends without an error.
        onward.once("close", () => reject(new Unreachable(502, `${destination.host} closed the connection.`)));
        pipeline(request, onward, () => undefined);
      });
      // The standard reason: the server's own may hold characters that no status line may.
      response.writeHead(answer.statusCode ?? 502, withoutHops(answer.headers));
      pipeline(answer, response, () => undefined);
    } catch (error) {
      const { status, message } = unreachable(error);
      if (response.headersSent) return void response.destroy();
      response.writeHead(status, { "content-type": "text/plain; charset=utf-8", connection: "close" });
      response.end(`${message}\n`);
    }
  }

  /** Whether a connection is worth a try. A refused name is: the connection then says the rule, with the port. */
  async #hasAddress(asked: Destination): Promise<boolean> {
    const { destination, policy, decision } = await this.#judge(asked);
    return !("unknown" in decision) || this.#options.upstream?.resolves(destination.host, policy) === true;
  }

  async #judge(
    asked: Destination,
  ): Promise<{ destination: Destination; policy: EgressPolicy; decision: EgressDecision }> {
    const { rules, gpuServers, indexes, resolve } = this.#options;
    const host = canonicalHost(asked.host);
    if (host === undefined) throw new Unreachable(400, `"${asked.host.slice(0, 100)}" is no host name and no address.`);
    const destination = { host, port: asked.port };
    const policy = await this.#options.policy();
    const input = { destination, policy, rules, gpuServers: gpuServers(), indexes, resolve };
    // The place in the queue is held until the resolver has answered, also when nobody waits for it any more.
    const decision = await within(
      RESOLVE_MS,
      this.#lookups.run(() => judge(input)),
      (): EgressDecision => {
        return { unknown: `The resolver did not answer for ${host} in time.` };
      },
    );
    return { destination, policy, decision };
  }

  /** The route to a permitted destination; throws `Unreachable` with the rule. */
  async #route(asked: Destination): Promise<Route> {
    const { gpuServers, indexes, upstream, onRefused } = this.#options;
    const { destination, policy, decision } = await this.#judge(asked);
    if ("refused" in decision) {
      onRefused?.({ ...destination, reason: decision.refused });
      throw new Unreachable(403, decision.refused);
    }
    if ("unknown" in decision) {
      // Behind a proxy, the host may be unable to resolve names of the internet.
      if (upstream?.resolves(destination.host, policy) === true) {
        return { destination, lookup: undefined, mayEndHere: false };
      }
      throw new Unreachable(502, decision.unknown);
    }
    const { addresses } = decision;
    const lookup: LookupFunction = (_host, asked, done) => {
      const [first = { address: "", family: 4 }] = addresses;
      if (asked.all === true) done(null, addresses);
      else done(null, first.address, first.family);
    };
    const named = hostAndPort(destination);
    return { destination, lookup, mayEndHere: gpuServers().has(named) || indexes.has(named) };
  }

  /** A session of a GPU server may be silent for days. */
  #idleMs({ host, port }: Destination): number {
    return this.#options.gpuServers().has(hostAndPort({ host: bare(host).toLowerCase(), port })) ? 0 : IDLE_MS;
  }

  /** Ends the attempt when the client's socket closes, so that the limit of clients bounds the attempts too. */
  async #connect(client: Socket, asked: Destination): Promise<Socket> {
    const attempt = new AbortController();
    const leave = () => attempt.abort();
    client.once("close", leave);
    if (client.destroyed) leave();
    try {
      return await this.#reach(asked, attempt.signal);
    } finally {
      // From here on, an orderly end of the client leaves the other direction open.
      client.off("close", leave);
    }
  }

  async #reach(asked: Destination, signal: AbortSignal): Promise<Socket> {
    const route = await this.#route(asked);
    signal.throwIfAborted();
    const { upstream } = this.#options;
    if (upstream?.covers(route.destination.host) !== true) return await this.#dial(route, signal);
    const through = await throughUpstream(upstream, hostAndPort(route.destination), CONNECT_MS, signal);
    this.#keep(through);
    return through;
  }

  /** A connection to a judged address that does not end at this host. Nothing was sent through it. */
  async #dial({ destination, lookup, mayEndHere }: Route, signal: AbortSignal): Promise<Socket> {
    const { host, port } = destination;
    const socket = connect({ host: bare(host), port, lookup, allowHalfOpen: true, signal });
    this.#keep(socket);
    await new Promise<void>((resolve, reject) => {
      socket.setTimeout(CONNECT_MS, () => reject(new Unreachable(504, `${host} does not answer.`)));
      socket.once("connect", resolve).once("error", reject);
    }).catch((error: unknown) => {
      socket.destroy();
      throw error;
    });
    if (!mayEndHere && this.#options.rules.endsHere(socket)) {
      socket.destroy();
      const reason = closedHere(host);
      this.#options.onRefused?.({ ...destination, reason });
      throw new Unreachable(403, reason);
    }
    return socket;
  }

  #join(client: Socket, server: Socket, idleMs: number): void {
    server.setTimeout(idleMs, () => server.destroy());
    client.setTimeout(idleMs);
    // A far end that is gone is noticed within half a minute.
    server.setKeepAlive(true, KEEP_ALIVE_MS);
    server.setNoDelay(true);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      pipeline(from, to, () => {
        // An orderly end of one direction leaves the other direction open.
        if (from.errored !== null || to.errored !== null) for (const each of [from, to]) each.destroy();
      });
    }
  }
}

/** Host and port of a URL; `port` is the default port. */
function destinationOf(text: string, port: number | undefined): Destination {
  const match = /^http:\/\/(?:[^/@]*@)?(\[[0-9a-fA-F:.]{2,45}\]|[^/:?#[\]]{1,255})(?::(\d{1,5}))?(?:[/?#]|$)/.exec(
    text,
  );
  const named = match?.[2] === undefined ? port : Number(match[2]);
  if (match?.[1] === undefined || named === undefined || named < 1 || named > 65_535) {
    throw new Unreachable(400, "A connection needs a host and a port.");
  }
  return { host: match[1], port: named };
}

const bare = (host: string): string => host.replace(/^\[(.*)\]$/, "$1");

function unreachable(error: unknown): Unreachable {
  if (error instanceof Unreachable) return error;
  if (error instanceof SluiceError && error.code === "too-many") return new Unreachable(502, error.message);
  // Nothing of the host's own trouble, such as the path of its database, is for a tenant.
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const known = /^E(?:CONNREFUSED|CONNRESET|HOSTUNREACH|NETUNREACH|TIMEDOUT|PIPE)$/.test(code) ? ` (${code})` : "";
  return new Unreachable(502, `The connection could not be made${known}.`);
}
