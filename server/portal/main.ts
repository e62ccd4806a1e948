/** The portal's process: Next's production server, on an address or on a socket that `npm start` holds. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import next from "next";
import { env } from "#server/env.ts";
import { keptConnections } from "#server/http/kept-connections.ts";
import { listen } from "#server/listen.ts";
import { logger } from "#server/log.ts";
import { keepOutput } from "#server/output.ts";

/** Time for answers under way when the portal stops. Event streams do not end by themselves. */
const STOP_MS = 5_000;

keepOutput();
const { SLUICE_LISTEN: host, SLUICE_PORTAL_PORT: port } = env();
const log = logger("portal");
const server = createServer(keptConnections, (request, response) => void answer(request, response));
const portal = next({ dev: false, dir: process.cwd(), hostname: host, port, httpServer: server });
await portal.prepare();
const handle = portal.getRequestHandler();
const listening = await listen(server, { port, host });
console.log(JSON.stringify({ ready: "portal", port: listening.port }));

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    await handle(request, response);
  } catch (error) {
    log.error({ err: error, method: request.method }, "request failed");
    if (!response.headersSent) response.statusCode = 500;
    response.end();
  }
}

let stopping = false;
const stop = async (): Promise<void> => {
  if (stopping) return;
  stopping = true;
  const closed = new Promise<void>((resolve) => server.once("close", () => resolve()));
  listening.close();
  server.closeIdleConnections();
  setTimeout(() => server.closeAllConnections(), STOP_MS);
  await closed;
  await portal.close();
  process.exit(0);
};
process.on("SIGTERM", () => void stop());
process.on("SIGINT", () => void stop());
