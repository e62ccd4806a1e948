/** All control connections of this broker. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { Database } from "#server/db/client.ts";
import { env } from "#server/env.ts";
import { networkOfClient } from "#server/http/client-address.ts";
import { refuseRequest } from "#server/http/end-socket.ts";
import type { Live } from "#server/live.ts";
import type { Logger } from "#server/log.ts";
import type { Signer } from "#server/services/lease/signer.ts";
import { ControlConnection } from "./connection.ts";
import { UnprovedConnections } from "./unproved.ts";

const MAX_MESSAGE = 4 * 1024 * 1024;

export type ControlServer = {
  upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Servers connected here. */
  connected: () => number;
  close: () => Promise<void>;
};

export function createControlServer(options: { db: Database; live: Live; signer: Signer; log: Logger }): ControlServer {
  const { db, live, signer, log } = options;
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE, perMessageDeflate: false });
  const all = new Set<ControlConnection>();
  const unproved = new UnprovedConnections<ControlConnection>();
  const byServer = new Map<string, ControlConnection>();

  const unsubscribe = live.subscribe(["ending", "pool"], ({ topic, id }) => {
    if (topic === "ending" && id === null) for (const connection of byServer.values()) connection.endLeases();
    if (topic === "ending" && id !== null) byServer.get(id)?.endLeases();
    if (topic === "pool" && id !== null) byServer.get(id)?.checkRemoved();
  });

  return {
    upgrade(request, socket, head) {
      const address = networkOfClient(request, env().SLUICE_BROKER_PROXY_HOPS) ?? "";
      if (!unproved.makeRoom(address)) {
        refuseRequest(socket, { status: 503, headers: { "retry-after": "5" } });
        return;
      }
      sockets.handleUpgrade(request, socket, head, (webSocket) => {
        const made = new ControlConnection({
          socket: webSocket,
          db,
          signer,
          log,
          onOpen: (serverId, connection) => {
            unproved.delete(connection);
            byServer.get(serverId)?.close(1012, "connected again");
            byServer.set(serverId, connection);
          },
          onClose: (connection) => {
            unproved.delete(connection);
            all.delete(connection);
            const { serverId } = connection;
            if (serverId !== undefined && byServer.get(serverId) === connection) byServer.delete(serverId);
          },
        });
        all.add(made);
        unproved.add(made, address);
      });
    },
    connected: () => byServer.size,
    async close() {
      unsubscribe();
      const open = [...all];
      for (const connection of open) connection.close();
      await Promise.all(open.map(async (connection) => await connection.settled()));
      sockets.close();
    },
  };
}
