/** How the broker follows a workspace's own server, which `native/python/tests/test_server.py` tests from its side. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import type { DatasetMount, Prefetched } from "#server/launchers/launcher.ts";
import { readAheadWithin } from "./read-ahead.ts";

const dataset: DatasetMount = {
  ...{ id: "dst-images", name: "images", team: undefined, writable: false, prefetch: true },
  source: { kind: "nfs", server: "nas.example", path: "/export/images" },
};
const signal = new AbortController().signal;
const MB = 2 ** 20;

let server: Server | undefined;
afterEach(() => server?.close());

/**
 * A server that says one thing after the other, and the last of them for ever; `undefined`: it has no such address,
 * `null`: it hangs up.
 */
async function says(...answers: (object | string | undefined | null)[]) {
  const asked: unknown[] = [];
  server = createServer((request, response) => {
    void (async () => {
      let body = "";
      for await (const part of request) body += String(part);
      asked.push([request.method, request.url, request.headers.authorization, JSON.parse(body)]);
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      if (answer === null) return response.destroy();
      response.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" });
      response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
    })();
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { asked, at: { endpoint: `http://127.0.0.1:${port}/`, token: "t" } };
}

it("asks until it is read, and tells how far it has come", async () => {
  const { asked, at } = await says(
    { state: "reading", bytes: 0, totalBytes: null, lacks: null },
    { state: "reading", bytes: MB, totalBytes: 2 * MB, lacks: null },
    { state: "done", bytes: 2 * MB, totalBytes: 2 * MB, lacks: null },
  );
  const told: Prefetched[] = [];
  const end = await readAheadWithin(at, dataset, (so) => told.push(so) > 0, signal);
  expect(end).toEqual({ state: "done", bytes: 2 * MB, totalBytes: 2 * MB, message: null });
  expect(told.map(({ bytes, totalBytes }) => [bytes, totalBytes])).toEqual([
    [0, null],
    [MB, 2 * MB],
  ]);
  const question = ["POST", "/sluice-gpu/datasets?no_track_activity=1", "token t", { folder: "/datasets/images" }];
  expect(asked).toEqual([question, question, question]);
});

it("asks again where the server has not answered", async () => {
  const { asked, at } = await says(null, null, { state: "done", bytes: 1, totalBytes: 1, lacks: null });
  expect(await readAheadWithin(at, dataset, () => true, signal)).toMatchObject({ state: "done" });
  expect(asked).toHaveLength(3);
});

it("asks no more when nobody wants it read any more, nor of what shall not be read", async () => {
  const { asked, at } = await says({ state: "reading", bytes: 0, totalBytes: null, lacks: null });
  await readAheadWithin(at, dataset, () => false, signal);
  expect(asked).toHaveLength(1);
  await readAheadWithin(at, dataset, () => true, AbortSignal.abort());
  expect(await readAheadWithin(at, { ...dataset, prefetch: false }, () => true, signal)).toBeUndefined();
  expect(asked).toHaveLength(1);
});

it.each([
  [{ state: "partly", lacks: "memory" }, "partly", /larger than half of the memory/],
  [{ state: "partly", lacks: "files" }, "partly", /cannot be read/],
  [{ state: "missing", lacks: null }, "missing", /log of the start/],
  [{ state: "failed", lacks: null }, "failed", /cannot be read/],
])("tells of %o in a sentence of its own", async (answer, state, message) => {
  const { at } = await says({ bytes: MB, totalBytes: 2 * MB, ...answer });
  const end = await readAheadWithin(at, dataset, () => true, signal);
  expect(end?.state).toBe(state);
  expect(end?.message).toMatch(message);
});

it("reads nothing by a package that is older than the question, and believes nothing that cannot be", async () => {
  expect(await readAheadWithin((await says(undefined)).at, dataset, () => true, signal)).toBeUndefined();
  server?.close();
  for (const wrong of [
    { state: "done", bytes: -1, totalBytes: 0, lacks: null },
    { state: "on fire" },
    "x".repeat(5000),
  ]) {
    const { at } = await says(wrong);
    await expect(readAheadWithin(at, dataset, () => true, signal)).rejects.toThrow();
    server?.close();
  }
});
