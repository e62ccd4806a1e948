import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import { withoutHops } from "#server/http/hop-headers.ts";
import { guardResponse } from "./proxy-headers.ts";

/**
 * Passes a workspace's answer on to the browser. Returns false, with nothing written, for an answer that HTTP does not
 * permit: its program chooses status, reason and headers, and Node throws for some of them.
 */
export function passAnswer(answer: IncomingMessage, response: ServerResponse): boolean {
  guardResponse(answer.headers);
  try {
    // With the standard reason. The body's framing is this connection's own.
    const headers = withoutHops(answer.headers);
    delete headers["transfer-encoding"];
    response.writeHead(answer.statusCode ?? 0, headers);
  } catch {
    answer.destroy();
    return false;
  }
  pipeline(answer, response, () => undefined);
  return true;
}
