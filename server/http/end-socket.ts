import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";

/** How long a client that still sends has to read the answer. */
const LINGER_MS = 1_000;

/**
 * Writes a last answer and closes the connection, at the latest after a second. What the client still sends is thrown
 * away: data that nobody reads would keep the connection open for ever, and a socket that is closed at once is reset,
 * so that the answer can be lost.
 */
export function endSocket(socket: Duplex, answer?: string): void {
  if (socket.destroyed) return;
  socket.resume();
  socket.end(answer);
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}

type Refusal = { status: number; reason?: string; body?: string; headers?: Record<string, string> };

/** Refuses a request whose answer no `ServerResponse` writes, such as an upgrade, and closes its connection. */
export function refuseRequest(socket: Duplex, { status, reason, body = "", headers = {} }: Refusal): void {
  const all = {
    "content-type": "text/plain; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
    "cache-control": "no-store",
    connection: "close",
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  const head = [`HTTP/1.1 ${status} ${reason ?? STATUS_CODES[status] ?? "Refused"}`, ...lines];
  endSocket(socket, `${head.join("\r\n")}\r\n\r\n${body}`);
}
