/** An API server that answers without end, slowly, compressed or with redirects. */
import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { expect, it, vi } from "vitest";
import { startApi } from "./testing-api.ts";

const LIMITS = { maxBytes: 64 * 1024, timeoutMs: 500, maxLogBytes: 64 * 1024, maxChangeBytes: 64 * 1024 };
const POD = { apiVersion: "v1", kind: "Pod", metadata: { name: "one", namespace: "team" } };

let sent = 0;

function answerForEver(response: ServerResponse): void {
  sent = 0;
  const more = () => {
    while (!response.destroyed && response.write(Buffer.alloc(65_536, "x"))) sent += 65_536;
    response.once("drain", more);
  };
  more();
}

/** What a list fails with, by the chain of its causes. */
async function failureOf(answer: (response: ServerResponse) => void): Promise<string> {
  const api = await startApi((_, response) => {
    answer(response);
    return undefined;
  }, LIMITS);
  const error = await api.client.core.listNamespacedPod({ namespace: "team" }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  await api.stop();
  let text = "";
  for (let at = error; at instanceof Error; at = at.cause) text += `${at.message} `;
  return text;
}

it("ends a list without end", async () => {
  expect(await failureOf(answerForEver)).toContain("larger than 64 KiB");
  expect(sent).toBeLessThan(16 * 1024 * 1024);
});

it("ends a list that comes one byte at a time", async () => {
  const slow = (response: ServerResponse) => {
    response.writeHead(200, { "content-type": "application/json" });
    const timer = setInterval(() => response.write(" "), 50);
    response.once("close", () => clearInterval(timer));
  };
  expect(await failureOf(slow)).toContain("not complete within 0.5 s");
});

it("follows no redirect", async () => {
  const elsewhere = (response: ServerResponse) => {
    response.writeHead(302, { location: "http://169.254.169.254/latest/meta-data/" }).end();
  };
  expect(await failureOf(elsewhere)).toContain("redirect");
});

it("refuses a compressed answer, which grows after it was counted", async () => {
  const compressed = (response: ServerResponse) => {
    const body = gzipSync(Buffer.alloc(32 * 1024 * 1024, " "));
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end(body);
  };
  expect(await failureOf(compressed)).toContain("compressed");
});

it("follows a watch for longer than any answer takes, and begins anew after one change without end", async () => {
  let watches = 0;
  const api = await startApi((asked, response) => {
    if (asked.searchParams.get("watch") !== "true") return { metadata: { resourceVersion: "1" }, items: [] };
    watches += 1;
    response.writeHead(200, { "content-type": "application/json" });
    if (watches > 1) {
      answerForEver(response);
      return undefined;
    }
    // More than 64 KiB in all, in lines that are shorter.
    const padding = "x".repeat(1024);
    let told = 0;
    const timer = setInterval(() => {
      told += 1;
      const object = { ...POD, metadata: { ...POD.metadata, resourceVersion: `${told}`, annotations: { padding } } };
      response.write(`${JSON.stringify({ type: told === 1 ? "ADDED" : "MODIFIED", object })}\n`);
      if (told === 150) response.end();
    }, 5);
    response.once("close", () => clearInterval(timer));
    return undefined;
  }, LIMITS);
  const list = async () => await api.client.core.listNamespacedPod({ namespace: "team" });
  const watched = await api.client.watch({ path: "/api/v1/namespaces/team/pods", list });
  const newest = () => watched.all().at(0)?.metadata?.resourceVersion;
  await vi.waitFor(() => expect(newest()).toBe("150"), { timeout: 10_000 });
  await vi.waitFor(() => expect(watches).toBeGreaterThan(2), { timeout: 10_000 });
  expect(sent).toBeLessThan(16 * 1024 * 1024);
  await watched.stop();
  await api.stop();
}, 30_000);

it("ends a followed log above its limit, whatever the API server was asked for", async () => {
  const api = await startApi((_, response) => {
    answerForEver(response);
    return undefined;
  }, LIMITS);
  const lines: string[] = [];
  const pod = { namespace: "team", name: "one", container: "workspace" };
  const { ended } = await api.client.followLog(pod, (line) => lines.push(line));
  await ended;
  expect(lines.join("").length).toBeLessThanOrEqual(64 * 1024);
  expect(sent).toBeLessThan(16 * 1024 * 1024);
  await api.stop();
});
