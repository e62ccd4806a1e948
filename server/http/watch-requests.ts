import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { IncomingMessage, ServerResponse } from "node:http";
import { env } from "#server/env.ts";
import { noteClientAddress } from "./client-address.ts";
import { limitBody } from "./limit-body.ts";
import { MAX_BODY_BYTES } from "./read-bytes.ts";

/** Node tells here of each request that a server of this process has read, before the server itself hears of it. */
const CHANNEL = "http.server.request.start";

/**
 * Notes in every request of this process's servers where it came from: Next's handlers and pages see headers, and not
 * the socket. Limits its body too: Next, and libraries in its handlers, read one of any length. Until the returned
 * function is called.
 */
export function watchRequests(): () => void {
  const { SLUICE_PROXY_HOPS: hops } = env();
  const note = (message: unknown) => {
    if (typeof message !== "object" || message === null || !("request" in message)) return;
    if (!(message.request instanceof IncomingMessage)) return;
    noteClientAddress(message.request, hops);
    const response: unknown = "response" in message ? message.response : undefined;
    if (response instanceof ServerResponse) limitBody(message.request, response as ServerResponse, MAX_BODY_BYTES);
  };
  subscribe(CHANNEL, note);
  return () => unsubscribe(CHANNEL, note);
}
