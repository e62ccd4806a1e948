/** The broker's HTTP servers and control channel over one database, without the process around them. */
import { X509Certificate } from "node:crypto";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { OpenDatabase } from "#server/db/client.ts";
import { type Env, env } from "#server/env.ts";
import { ConnectionLimit } from "#server/http/connection-limit.ts";
import { refuseRequest } from "#server/http/end-socket.ts";
import { keptConnections } from "#server/http/kept-connections.ts";
import type { Launcher } from "#server/launchers/launcher.ts";
import { BROKER_SOCKET } from "#server/launchers/local/network.ts";
import { listen } from "#server/listen.ts";
import { createLive, type Live } from "#server/live.ts";
import type { Logger } from "#server/log.ts";
import { loadSigner } from "#server/services/lease/signer.ts";
import { serveWorkspaces } from "#server/workspace-sockets.ts";
import { createControlServer } from "./control/server.ts";
import { startLivenessLoop } from "./liveness-loop.ts";
import { createMetrics } from "./metrics.ts";
import { createRouter, type Route } from "./router.ts";
import { brokerRoutes, internalRoutes } from "./routes.ts";
import { startUsageLoop } from "./usage-loop.ts";
import { createWatchers } from "./watchers.ts";

/** Connections of one local workspace: its server, and a few for each program with a lease. */
const MOST_LOCAL_CONNECTIONS = 256;
/** Connections of one network: a pod, all clients behind one address, or a cluster node's pods with IPv6. */
const MOST_NETWORK_CONNECTIONS = 1024;

export type Broker = {
  port: number;
  internalPort: number;
  live: Live;
  /** Long polls that wait for a change. */
  waiting: () => number;
  stop: () => Promise<void>;
};

export type BrokerOptions = {
  database: OpenDatabase;
  env: Pick<Env, "SLUICE_SIGNING_KEY" | "SLUICE_STATE_DIR">;
  log: Logger;
  /** For workspaces and GPU servers. 0 takes a free port. */
  port: number;
  /** For Prometheus and a cluster's API server, which workspaces need not reach; a free one where none is given. */
  internalPort?: number;
  host?: string;
  /** Where the sockets of local workspaces lie, which have no other network; undefined without a local launcher. */
  stateDir?: string;
  /** What runs workspaces here, for whoever asks whether all is well. */
  launchers?: ReadonlyMap<string, Launcher>;
  /** Certificate and key (PEM) to speak HTTPS with. */
  tls?: Certificate;
  /** Another one for the internal port, for who asks by a name that it holds for. */
  internalTls?: Certificate;
};

export type Certificate = { cert: string; key: string };

export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const { database, log } = options;
  const signer = await loadSigner(options.env);
  const live = createLive(database.sql);
  const watchers = createWatchers(live);
  const control = createControlServer({ db: database.db, live, signer, log });
  const metrics = createMetrics(database.db, () => control.connected());
  // Clients keep their connection between long polls.
  const times = { ...keptConnections, requestTimeout: 60_000 };
  const limit = new ConnectionLimit({ most: MOST_NETWORK_CONNECTIONS, hops: env().SLUICE_BROKER_PROXY_HOPS });
  const serverOf = (routes: Route[], another?: Certificate) => {
    const router = limit.around(createRouter({ routes, db: database.db, log, onDone: metrics.observed }));
    if (options.tls === undefined) return createServer(times, router);
    const made = createSecureServer({ ...times, ...options.tls }, router);
    if (another !== undefined) for (const name of namesOf(another)) made.addContext(name, another);
    return made;
  };
  const launchers = options.launchers ?? new Map<string, Launcher>();
  const routes = brokerRoutes({ watch: watchers.watch, signer, metrics, launchers });
  const server = serverOf(routes);
  limit.watch(server);
  const routed = createRouter({ routes, db: database.db, log, onDone: metrics.observed });
  const serveLocal = () => {
    const local = createServer(times, routed);
    local.maxConnections = MOST_LOCAL_CONNECTIONS;
    const close = () => {
      local.close();
      local.closeAllConnections();
    };
    return { server: local, close };
  };
  const internal = serverOf(internalRoutes(metrics), options.internalTls);
  server.on("upgrade", (request, socket, head: Buffer) => {
    // Whoever knocks may hang up at any moment, and may ask for anything that is no address at all.
    socket.on("error", () => socket.destroy());
    const [pathname] = (request.url ?? "").split("?");
    if (pathname === "/v1/control") {
      // The control channel has limits of its own, by a server's key: many servers may share an address.
      limit.release(request.socket);
      control.upgrade(request, socket, head);
    } else refuseRequest(socket, { status: 404 });
  });
  const host = options.host ?? "127.0.0.1";
  const listening = {
    internal: await listen(internal, { port: options.internalPort ?? 0, host }),
    main: await listen(server, { port: options.port, host }),
  };
  const serving =
    options.stateDir === undefined
      ? undefined
      : await serveWorkspaces({ stateDir: options.stateDir, name: BROKER_SOCKET, log, serve: serveLocal });
  await live.ready();
  const liveness = startLivenessLoop({ database, live, log });
  const usage = startUsageLoop({ database, log });
  return {
    port: listening.main.port,
    internalPort: listening.internal.port,
    live,
    waiting: watchers.size,
    stop: async () => {
      await Promise.all([liveness.stop(), usage.stop()]);
      await control.close();
      watchers.close();
      await serving?.close();
      for (const each of [listening.main, listening.internal]) each.close();
      for (const each of [server, internal]) each.closeAllConnections();
      await live.close();
    },
  };
}

/** The names of hosts that a certificate holds for. */
function namesOf({ cert }: Certificate): string[] {
  const names = new X509Certificate(cert).subjectAltName ?? "";
  return [...names.matchAll(/DNS:([^\s,]+)/g)].map(([, name = ""]) => name);
}
