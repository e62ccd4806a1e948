/** For tests: a client that sends a long body piece by piece, without saying how long it is unless it is told to. */
import { Agent, request } from "node:http";

type Sent = {
  path: string;
  method?: string;
  chunks: number;
  chunkBytes: number;
  headers?: Record<string, string>;
};

/** The answer, as soon as it comes; what is left of the body is not sent then. */
export async function sendChunks(port: number, sent: Sent): Promise<{ status: number; body: string }> {
  // As browsers and our clients: a server may close a connection that is not kept while the rest is still on its way,
  // and the answer is lost with it.
  const agent = new Agent({ keepAlive: true });
  const answer = new Promise<{ status: number; body: string }>((resolve, reject) => {
    let isAnswered = false;
    // Without a length Node sends pieces by itself for some methods only.
    const framing = sent.headers?.["content-length"] === undefined ? { "transfer-encoding": "chunked" } : {};
    const headers = { "content-type": "application/json", ...framing, ...sent.headers };
    const outgoing = request({
      host: "127.0.0.1",
      port,
      path: sent.path,
      method: sent.method ?? "POST",
      headers,
      agent,
    });
    outgoing.on("response", (response) => {
      isAnswered = true;
      let body = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        body += part;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      response.on("error", reject);
    });
    outgoing.on("error", (error) => {
      if (!isAnswered) reject(error);
    });
    const piece = Buffer.alloc(sent.chunkBytes, " ");
    const next = (left: number): void => {
      if (isAnswered) return;
      if (left === 0) outgoing.end();
      else outgoing.write(piece, () => next(left - 1));
    };
    next(sent.chunks);
  });
  return await answer.finally(() => agent.destroy());
}
