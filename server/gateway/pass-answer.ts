import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import { withoutHops } from "#server/http/hop-headers.ts";
import { guardResponse } from "./proxy-headers.ts";

/**
 * Passes a workspace's answer on to the browser. Returns false, with nothing written, for an answer that HTTP does not
 * permit: its program chooses status, reason and headers, and Node throws for some of them.
 */
export function passAnswer(answer: IncomingMessage, response: ServerResponse): boolean {
  const headers = withoutHops(answer.headers);
  // The body's framing is this connection's own.
  delete headers["transfer-encoding"];
  // Last: the workspace names which headers are hop-by-hop.
  guardResponse(headers);
  try {
    // With the standard reason.
    response.writeHead(answer.statusCode ?? 0, headers);
  } catch {
    answer.destroy();
    return false;
  }
  pipeline(answer, response, () => undefined);
  return true;
}
