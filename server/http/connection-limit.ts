/** Limits what one network takes of a server that everybody reaches: its connections, or its requests behind a proxy. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { BlockList, isIP, type Server, type Socket } from "node:net";
import { errorBody, httpStatus, SluiceError } from "#server/errors.ts";
import { networkOf, networkOfClient } from "#server/http/client-address.ts";
import { Places } from "#server/http/places.ts";

export type ConnectionLimitOptions = {
  /** Maximum connections of one network; behind proxies, its requests at one time. */
  most: number;
  /** Trusted proxies in front. All connections come from the last of them, so requests count instead. */
  hops: number;
  /** Peers without a limit; default: this host. */
  isExempt?: (address: string) => boolean;
};

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

export class ConnectionLimit {
  readonly #options: ConnectionLimitOptions;
  readonly #places: Places;
  /** What gives the place of an open connection back, by the peer's address and port. */
  readonly #connections = new Map<string, () => void>();

  constructor(options: ConnectionLimitOptions) {
    this.#options = options;
    this.#places = new Places(options.most);
  }

  /** Ends connections beyond the limit before any byte of them is read. */
  watch(server: Server): void {
    if (this.#options.hops > 0) return;
    server.on("connection", (socket: Socket) => {
      const { remoteAddress } = socket;
      if (remoteAddress === undefined) return;
      const { isExempt = isThisHost } = this.#options;
      if (isExempt(remoteAddress)) return;
      const leave = this.#places.take(networkOf(remoteAddress));
      if (leave === undefined) {
        socket.destroy();
        return;
      }
      const peer = peerOf(socket);
      this.#connections.set(peer, leave);
      socket.once("close", () => {
        leave();
        // A new connection can have the same port before this one is known to be closed.
        if (this.#connections.get(peer) === leave) this.#connections.delete(peer);
      });
    });
  }

  /** Counts a connection no longer, because other limits hold for what it has become. */
  release(socket: { remoteAddress?: string; remotePort?: number }): void {
    this.#connections.get(peerOf(socket))?.();
  }

  /** The listener for requests; behind proxies it refuses those beyond the limit. */
  around(listener: Listener): Listener {
    const { hops, most } = this.#options;
    if (hops === 0) return listener;
    return (request, response) => {
      const leave = this.#places.take(networkOfClient(request, hops) ?? "unknown");
      if (leave !== undefined) {
        response.once("close", leave);
        listener(request, response);
        return;
      }
      const message = `Your network has ${most} open requests, which is the limit. Try again when one has ended.`;
      const error = new SluiceError("too-many", message);
      response.writeHead(httpStatus(error.code), {
        "content-type": "application/json; charset=utf-8",
        "retry-after": "2",
        connection: "close",
      });
      response.end(JSON.stringify(errorBody(error)));
    };
  }
}

/** A TLS socket and the socket below it name the same peer. */
const peerOf = ({ remoteAddress, remotePort }: { remoteAddress?: string; remotePort?: number }): string =>
  `${remoteAddress} ${remotePort}`;

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Programs of this host: no workspace is among them, and a proxy may be. */
function isThisHost(address: string): boolean {
  return loopback.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}
