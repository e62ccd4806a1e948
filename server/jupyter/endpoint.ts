/**
 * Connections to a workspace's Jupyter server: `http://HOST:PORT` in a pod, `unix:PATH` on this machine. The server is
 * under a tenant's control, so answers are bounded in bytes and time, and redirects and links are not followed.
 */
import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { Agent, type AgentOptions, type IncomingMessage, type RequestOptions, request } from "node:http";
import { connect, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type AnswerLimits, readAnswer, responseOf } from "#server/http/bounded-answer.ts";

/** Opens a path without opening the file for reading (Linux, open(2)). */
const O_PATH = 0o10000000;
/** Default limits of an answer, for lists of kernels, sessions and files. */
const ANSWER: AnswerLimits = { maxBytes: 4 * 1024 * 1024, timeoutMs: 30_000 };
/** Requests to one workspace at a time; further ones fail at once. */
const MOST_REQUESTS = 16;

const UNIX = "unix:";

/** The endpoint of a server that listens on a Unix socket. */
export function unixEndpoint(file: string): string {
  return `${UNIX}${file}`;
}

/** Host and port, or socket, as options of Node's HTTP client and of the gateway's proxy. */
export function addressOf(endpoint: string): { host: string; port: number; socketPath?: string } {
  if (endpoint.startsWith(UNIX)) return { socketPath: endpoint.slice(UNIX.length), host: "workspace", port: 80 };
  const { hostname, port } = new URL(endpoint);
  return { host: hostname.replace(/^\[(.*)\]$/, "$1"), port: Number(port || 80) };
}

/** The base URL for a client library. The library's agent decides where connections go. */
export function baseUrlOf(endpoint: string): string {
  return endpoint.startsWith(UNIX) ? "http://workspace" : endpoint;
}

/**
 * Connects to a Unix socket in a folder that a workspace can write to. A workspace could put a link to another socket
 * of this machine in its place, so the file is opened without following links, and the connection uses the descriptor.
 */
export function connectToSocket(file: string): Socket {
  let descriptor: number;
  try {
    descriptor = openSync(file, O_PATH | constants.O_NOFOLLOW);
  } catch (error) {
    return broken(error);
  }
  if (!fstatSync(descriptor).isSocket()) {
    closeSync(descriptor);
    return broken(new Error(`${file} is not a socket.`));
  }
  // The path of a socket has at most 107 bytes.
  const socket = connect({ path: `/proc/self/fd/${descriptor}` });
  const close = () => {
    socket.off("connect", close).off("close", close);
    closeSync(descriptor);
  };
  return socket.once("connect", close).once("close", close);
}

function broken(error: unknown): Socket {
  const socket = new Socket();
  process.nextTick(() => socket.destroy(error instanceof Error ? error : new Error(String(error))));
  return socket;
}

type Connected = (error: Error | null, socket: Duplex) => void;

/** An agent that connects by `connectToSocket`: to its `endpoint`, or to the `socketPath` of a request. */
export class WorkspaceAgent extends Agent {
  readonly #endpoint: string | undefined;

  constructor(options: AgentOptions, endpoint?: string) {
    super(options);
    this.#endpoint = endpoint;
  }

  override createConnection(options: RequestOptions, connected?: Connected): Duplex | null | undefined {
    const own = this.#endpoint === undefined ? undefined : addressOf(this.#endpoint).socketPath;
    const socketPath = own ?? options.socketPath;
    if (typeof socketPath === "string") return connectToSocket(socketPath);
    return super.createConnection(options, connected);
  }
}

/** Number of requests under way, by endpoint. */
const underWay = new Map<string, number>();

/**
 * `fetch` for one endpoint: no redirects, by default at most 4 MiB within 30 s (less where the request's signal says
 * so), and 16 requests at a time, so that a workspace that never answers holds at most 16 answers in memory.
 */
export function fetchOf(endpoint: string, limits: AnswerLimits = ANSWER): typeof globalThis.fetch {
  return async (input, init) => {
    const requests = underWay.get(endpoint) ?? 0;
    if (requests >= MOST_REQUESTS) throw new Error("The workspace's server has not answered the requests before.");
    underWay.set(endpoint, requests + 1);
    try {
      const wanted = input instanceof Request && init === undefined ? input : new Request(input, init);
      return await ask(endpoint, wanted, limits);
    } finally {
      const left = (underWay.get(endpoint) ?? 1) - 1;
      if (left === 0) underWay.delete(endpoint);
      else underWay.set(endpoint, left);
    }
  };
}

async function ask(endpoint: string, wanted: Request, limits: AnswerLimits): Promise<Response> {
  const { pathname, search } = new URL(wanted.url);
  const body = wanted.body === null ? undefined : Buffer.from(await wanted.arrayBuffer());
  const headers = Object.fromEntries(wanted.headers);
  const onward = request({
    ...addressOf(endpoint),
    agent: new WorkspaceAgent({ keepAlive: false }),
    method: wanted.method,
    path: `${pathname}${search}`,
    headers: body === undefined ? headers : { ...headers, "content-length": body.length },
    signal: AbortSignal.any([wanted.signal, AbortSignal.timeout(limits.timeoutMs)]),
  });
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    onward.once("response", resolve).once("error", reject);
    // After an upgrade that was not asked for, Node closes the connection without an error.
    onward.once("close", () => reject(new Error("The workspace's server closed the connection.")));
    onward.end(body);
  });
  const answerHeaders = new Headers();
  for (const [name, value] of Object.entries(answer.headers)) {
    for (const one of [value ?? []].flat()) answerHeaders.append(name, one);
  }
  return responseOf(answer.statusCode ?? 502, answerHeaders, await readAnswer(answer, limits.maxBytes));
}
