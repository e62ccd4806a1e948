/** How a process of Sluice listens: at an address, or on sockets that `npm start` holds for its port. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { env, type HeldSocket } from "#server/env.ts";

export type Listening = {
  port: number;
  /** Accepts no more connections; open connections stay. */
  close: () => void;
};

/**
 * Listens on the inherited sockets for `port`, else at `host` and `port`. Accepts connections that waited while no
 * process listened. Port 0 chooses a free port.
 */
export async function listen(
  server: Server,
  { port, host }: { port: number; host: string },
  held: readonly HeldSocket[] = env().SLUICE_LISTEN_FDS,
): Promise<Listening> {
  const [first, ...others] = held.filter((socket) => socket.port === port);
  await begin(server, first === undefined ? { port, host } : { fd: first.fd });
  const more: Server[] = [];
  for (const { fd } of others) {
    // A server listens on one socket. The `connection` event hands it connections of further sockets.
    const other = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit("connection", socket));
    await begin(other, { fd });
    more.push(other);
  }
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      for (const each of [server, ...more]) each.close();
    },
  };
}

async function begin(server: Server, where: { port: number; host: string } | { fd: number }): Promise<void> {
  server.listen(where);
  await once(server, "listening");
}
