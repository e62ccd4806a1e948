import { readdirSync, readFileSync } from "node:fs";
import { Agent, createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { expect, it } from "vitest";
import { keptConnections } from "./kept-connections.ts";

/** One request for each connection, and a Unix socket that no proxy stands in front of. */
const WITHOUT = ["egress/egress-proxy.ts", "egress/health.ts"];

it("every HTTP server of Sluice keeps idle connections longer than proxies do", () => {
  const folder = path.resolve("server");
  const making = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !/\.(?:test|cluster)\.ts$|testing/.test(name))
    .filter((name) => !WITHOUT.includes(name))
    .map((name) => ({ name, text: readFileSync(path.join(folder, name), "utf8") }))
    .filter(({ text }) => /createServer[^;]*from "node:https?"/.test(text));
  expect(making.map(({ name }) => name).sort()).toEqual(["broker/broker.ts", "gateway/gateway.ts", "portal/main.ts"]);
  for (const { name, text } of making) {
    const made = text.match(/create(?:Secure)?Server\((?:\{ \.\.\.)?\w+/g) ?? [];
    expect(made, name).not.toEqual([]);
    for (const one of made) expect(one, name).toMatch(/(?:keptConnections|times)$/);
    expect(text, name).toContain("keptConnections");
  }
  expect(keptConnections.keepAliveTimeout).toBeGreaterThan(90_000);
});

it("a connection that is idle for longer than Node's default of 5 s is used again", { timeout: 30_000 }, async () => {
  const server = createServer(keptConnections, (_, response) => response.end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = () =>
    new Promise<boolean>((resolve, reject) => {
      const request = get({ host: "127.0.0.1", port, agent }, (answer) => {
        answer.resume().once("end", () => resolve(request.reusedSocket));
      });
      request.once("error", reject);
    });
  expect(await ask()).toBe(false);
  await new Promise((resolve) => setTimeout(resolve, 7_000));
  expect(await ask()).toBe(true);
  agent.destroy();
  await new Promise((resolve) => server.close(resolve));
});
