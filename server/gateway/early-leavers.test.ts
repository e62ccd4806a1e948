/** Clients that leave while the gateway still asks the database about them. */
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { eq } from "drizzle-orm";
import pino from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { makeWorkspace } from "#server/services/testing.ts";
import { handover } from "#server/services/workspace/handover.ts";
import { stop } from "#server/services/workspace/stop.ts";
import { closes, openSocket, SOON, send, startTestGateway, type TestGateway } from "./testing.ts";

/** More in `npm run soak -- leavers`. */
const LEAVERS = Number(process.env.SLUICE_TEST_LEAVERS ?? 300);
/** Clients that hold a connection at one time. */
const AT_ONCE = 100;

let database: TestDatabase;
let world: TestGateway["world"];
let upstream: TestGateway["upstream"];
let gateway: TestGateway["gateway"];
let close: TestGateway["close"];
const lines: string[] = [];
let ws: { id: string; host: string };
let cookie: string;

beforeAll(async () => {
  const log = pino({ level: "info" }, { write: (line: string) => lines.push(line) });
  database = await useTestDatabase();
  ({ world, upstream, gateway, close } = await startTestGateway(database, log));
  const { id } = await makeWorkspace(world, { owner: world.member });
  const running = { endpoint: upstream.endpoint, serverToken: "t" };
  await database.db.update(workspaces).set(running).where(eq(workspaces.id, id));
  ws = { id, host: `${id}.localhost:3002` };
  const way = new URL((await handover(world.member.ctx, { id })).url);
  const entered = await send(gateway.port, { host: ws.host, path: `${way.pathname}${way.search}` });
  cookie = (entered.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
});

afterAll(async () => {
  await close();
  await database.drop();
});

const upgradeHeaders = () => [
  "connection: Upgrade",
  "upgrade: websocket",
  `origin: http://${ws.host}`,
  "sec-websocket-version: 13",
  "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
];

/** Sends a request and leaves without waiting for the answer: every second client closes, the others reset. */
async function leave(turn: number): Promise<void> {
  const socket = connect(gateway.port, "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  const head = ["GET /api/status HTTP/1.1", `host: ${ws.host}`, `cookie: ${cookie}`];
  const lines = turn % 4 < 2 ? head : [...head, ...upgradeHeaders()];
  await new Promise<void>((resolve) => socket.write(`${lines.join("\r\n")}\r\n\r\n`, () => resolve()));
  await sleep(5);
  if (turn % 2 === 0) socket.destroy();
  else socket.resetAndDestroy();
}

it(
  "forgets clients that leave during their admission, and logs each closed connection once",
  async () => {
    for (let first = 0; first < LEAVERS; first += AT_ONCE) {
      // The lock holds every admission until the clients have left.
      await database.sql.begin(async (tx) => {
        await tx`lock table gateway_sessions in access exclusive mode`;
        await Promise.all(Array.from({ length: Math.min(AT_ONCE, LEAVERS - first) }, (_, at) => leave(first + at)));
        await sleep(100);
      });
    }
    await expect.poll(gateway.connections, SOON).toBe(0);

    const stays = await openSocket(gateway.port, {
      ...{ host: ws.host, path: "/channels" },
      headers: { cookie, origin: `http://${ws.host}` },
    });
    if (stays.socket === undefined) throw new Error("not open");
    // The last leavers may be admitted only now: they are forgotten once their answers have failed.
    await expect.poll(gateway.connections, SOON).toBe(1);
    await stop(world.member.ctx, { id: ws.id });
    expect(await closes(stays.socket)).toBe(true);
    // Two more looks at everything open.
    await sleep(4_500);
    expect(lines.filter((line) => line.includes("connection closed"))).toHaveLength(1);
    expect(gateway.connections()).toBe(0);
  },
  120_000 + 20 * LEAVERS,
);
