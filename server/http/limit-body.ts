import type { IncomingMessage, ServerResponse } from "node:http";
import { errorBody, httpStatus } from "#server/errors.ts";
import { refuseRequest } from "./end-socket.ts";
import { bodyTooLarge } from "./read-bytes.ts";

/**
 * Passes at most `maxBytes` of a request's body on to its reader, which may be a library's handler. Beyond that the client
 * gets 413 and the connection ends: the reader sees a client that hung up. Call it before the body arrives.
 */
export function limitBody(request: IncomingMessage, response: ServerResponse, maxBytes: number): void {
  const push = request.push.bind(request);
  let size = 0;
  let isRefused = false;
  const refuse = () => {
    if (isRefused) return;
    isRefused = true;
    answerTooLarge(request, response, maxBytes);
  };
  // Node's HTTP parser hands each part over by `push`, with no more between it and the socket.
  request.push = (part: unknown, encoding?: BufferEncoding) => {
    if (isRefused) return true;
    if (part instanceof Uint8Array) size += part.byteLength;
    if (size <= maxBytes) return push(part, encoding);
    refuse();
    return true;
  };
  // Later, as the answers to earlier requests of this connection come first.
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) setImmediate(refuse);
}

/** Writes to the socket itself: the request's handler still owns `response`, and may have begun with it. */
function answerTooLarge(request: IncomingMessage, response: ServerResponse, maxBytes: number): void {
  const { socket } = request;
  // An answer has begun, or another one comes first.
  if (response.headersSent || response.socket !== socket) {
    socket.destroy();
    return;
  }
  const error = bodyTooLarge(maxBytes);
  refuseRequest(socket, {
    status: httpStatus(error.code),
    body: JSON.stringify(errorBody(error)),
    headers: { "content-type": "application/json; charset=utf-8" },
  });
}
