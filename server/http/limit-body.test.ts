/** Whatever reads bodies in a process, and however long they are said to be: no more than the limit reaches it. */
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { limitBody } from "./limit-body.ts";
import { MAX_BODY_BYTES, readBytes } from "./read-bytes.ts";
import { sendChunks } from "./testing.ts";
import { watchRequests } from "./watch-requests.ts";

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

async function serve(handler: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> {
  const server = createServer(handler);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

describe("a reader without a limit of its own, as Next and libraries are", () => {
  it.each([
    ["by chunks", {}],
    ["with its length", { "content-length": String(64 * MAX_BODY_BYTES) }],
  ])("gets no more than the limit of a body that is sent %s, and the client 413", async (_, headers) => {
    ends.push(watchRequests());
    let read = 0;
    const port = await serve((incoming, answer) => {
      incoming.on("data", (part: Buffer) => {
        read += part.length;
      });
      incoming.on("end", () => answer.end("all read"));
      incoming.on("error", () => undefined);
    });
    const answer = await sendChunks(port, { path: "/", chunks: 64, chunkBytes: MAX_BODY_BYTES, headers });
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code: "too-large" } });
    expect(read).toBeLessThanOrEqual(MAX_BODY_BYTES);
  });

  it("gets all of a body within the limit", async () => {
    ends.push(watchRequests());
    const port = await serve((incoming, answer) => {
      void readBytes(incoming, 10 * MAX_BODY_BYTES).then((bytes) => answer.end(String(bytes.byteLength)));
    });
    const answer = await sendChunks(port, { path: "/", chunks: 4, chunkBytes: MAX_BODY_BYTES / 4 });
    expect(answer).toMatchObject({ status: 200, body: String(MAX_BODY_BYTES) });
  });
});

it("ends the connection where an answer has begun", async () => {
  const port = await serve((incoming, answer) => {
    limitBody(incoming, answer, 1024);
    answer.write("begun");
    incoming.resume();
  });
  await expect(sendChunks(port, { path: "/", chunks: 64, chunkBytes: 1024 })).rejects.toThrow();
});

it("leaves other requests of the process alone", async () => {
  ends.push(watchRequests());
  const port = await serve((incoming, answer) => answer.end(incoming.url));
  const text = await new Promise<string>((resolve, reject) => {
    request({ port, path: "/x" }, (response) => {
      response.setEncoding("utf8").on("data", resolve);
    })
      .on("error", reject)
      .end();
  });
  expect(text).toBe("/x");
});
