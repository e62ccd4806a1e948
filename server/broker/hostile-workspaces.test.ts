/** Workspaces that never answer, beside one that does. */
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { eq } from "drizzle-orm";
import { afterEach, beforeEach, expect, it } from "vitest";
import { workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import type { Launcher } from "#server/launchers/launcher.ts";
import { logger } from "#server/log.ts";
import { makeWorkspace, makeWorld } from "#server/services/testing.ts";
import { startWorkspaceWatch } from "./workspace-watch.ts";

const HOSTILE = 60;

let database: TestDatabase;
let servers: Server[];

beforeEach(async () => {
  database = await useTestDatabase({ max: 10 });
  servers = [];
});
afterEach(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await database.drop();
});

/** Its port, on every address of this machine: each workspace has an address of its own. */
async function serve(answer: RequestListener): Promise<number> {
  const server = createServer(answer).listen(0, "0.0.0.0");
  servers.push(server);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

it("measures a workspace in time beside many that answer slowly, and asks the slow ones in turn", async () => {
  let opened = 0;
  const asked = new Set<string>();
  const slow = await serve((request, response) => {
    opened += 1;
    asked.add(request.headers.authorization ?? "");
    const timer = setInterval(() => response.write(" "), 500);
    response.once("close", () => clearInterval(timer));
  });
  const lively = await serve((request, response) => {
    const usage = { cpuMs: 1, memoryBytes: 7 };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(request.url?.startsWith("/sluice-gpu/usage") ? usage : []));
  });
  const world = await makeWorld(database.db);
  const start = async (endpoint: string, serverToken: string): Promise<string> => {
    const { id } = await makeWorkspace(world, { owner: world.member });
    const running = { desired: "running", observed: "running", launcher: "blind", endpoint, serverToken } as const;
    await database.db.update(workspaces).set(running).where(eq(workspaces.id, id));
    return id;
  };
  for (let number = 0; number < HOSTILE; number++) await start(`http://127.0.1.${number}:${slow}`, `slow-${number}`);
  const honest = await start(`http://127.0.0.1:${lively}`, "lively");
  const blind = { usage: async () => new Map() } as unknown as Launcher;
  const watch = startWorkspaceWatch(database, {
    ...{ launchers: new Map([["blind", blind]]), log: logger("test") },
    ...{ everyMs: 3_600_000, askingMs: 6_000 },
  });
  const memory = async () => {
    const [row] = await database.db.select().from(workspaces).where(eq(workspaces.id, honest));
    return row?.memoryBytes;
  };
  // The first round may spend its time on the slow ones; the second knows them.
  const rounds: number[] = [];
  for (let round = 0; round < 3; round++) {
    const began = Date.now();
    await watch.look();
    rounds.push(Date.now() - began);
    if (round > 0) expect(await memory()).toBe(7);
  }
  await watch.stop();
  expect(Math.max(...rounds)).toBeLessThan(12_000);
  expect(opened).toBeGreaterThan(0);
  // 32 in each round.
  expect(asked.size).toBe(HOSTILE);
}, 60_000);
