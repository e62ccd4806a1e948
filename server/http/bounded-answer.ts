/**
 * Answers of programs that Sluice does not trust with its memory: workspaces, identity providers, the cluster, and any
 * program on the port of a service. Each answer is limited in bytes, and in time from the request to its last byte.
 * Redirects are not followed.
 */
import { Agent, type RequestOptions } from "node:http";
import { connect, type NetConnectOpts } from "node:net";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, connect as connectSecurely } from "node:tls";
import { collectBytes, formatBytes } from "./read-bytes.ts";

export type AnswerLimits = {
  /** Bytes of the body after decompression. `BoundedAgent` counts all bytes that a connection receives. */
  maxBytes: number;
  /** Time from the request to the last byte of the answer. */
  timeoutMs: number;
};

/** Statuses of answers without a body (RFC 9110). */
const WITHOUT_BODY = [204, 205, 304];

/** The error of an answer above its limit of bytes. */
export class AnswerTooLarge extends Error {
  constructor(maxBytes: number) {
    super(`The answer is larger than ${formatBytes(maxBytes)}.`);
  }
}

/**
 * Reads a whole body. Throws `AnswerTooLarge` at the first byte above the limit; that ends the iteration, and with it
 * the connection of a stream.
 */
export async function readAnswer(parts: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  return await collectBytes(parts, maxBytes, () => new AnswerTooLarge(maxBytes));
}

/** Makes a response from a complete body. `Response` takes statuses from 200 to 599: others become the nearest one. */
export function responseOf(status: number, headers: Headers, body: Buffer): Response {
  const known = Math.min(Math.max(status, 200), 599);
  return new Response(WITHOUT_BODY.includes(known) ? null : Uint8Array.from(body), { status: known, headers });
}

/** `fetch` within limits. Returns a redirect as the answer. The signal of the request may end the fetch earlier. */
export function boundedFetch({ maxBytes, timeoutMs }: AnswerLimits): typeof globalThis.fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
    const answer = await fetch(request, { redirect: "manual", signal });
    const headers = new Headers(answer.headers);
    // The body below is decompressed.
    for (const name of ["content-encoding", "content-length"]) headers.delete(name);
    return responseOf(answer.status, headers, await readAnswer(answer.body ?? new Blob([]).stream(), maxBytes));
  };
}

/**
 * An agent for client libraries that read answers without a limit, for URLs of one protocol. Each connection serves one
 * request, so the limits of an answer are limits of its connection.
 */
export class BoundedAgent extends Agent {
  readonly #limits: AnswerLimits;
  readonly #secure: boolean;

  constructor(protocol: "http:" | "https:", limits: AnswerLimits) {
    super({ keepAlive: false });
    this.#limits = limits;
    this.#secure = protocol === "https:";
    // Node reads both properties; its declarations lack them.
    Object.assign(this, { protocol, defaultPort: this.#secure ? 443 : 80 });
  }

  override createConnection(options: RequestOptions): Duplex {
    const connection = options as NetConnectOpts & ConnectionOptions;
    return limitConnection(this.#secure ? connectSecurely(connection) : connect(connection), this.#limits);
  }
}

/** Ends a connection above a limit, without an error: by then a library may have no listener for errors. */
function limitConnection(socket: Duplex, { maxBytes, timeoutMs }: AnswerLimits): Duplex {
  let received = 0;
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  socket.once("close", () => clearTimeout(timer));
  return socket.on("data", (part: Buffer) => {
    received += part.byteLength;
    if (received > maxBytes) socket.destroy();
  });
}
