/** Limits what one network takes of a server that everybody reaches: its connections, or its requests behind a proxy. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { BlockList, isIP, type Server, type Socket } from "node:net";
import { errorBody, httpStatus, SluiceError } from "#server/errors.ts";
import { networkOf, networkOfClient } from "#server/http/client-address.ts";

export type ConnectionLimitOptions = {
  /** Maximum connections of one network; behind proxies, its requests at one time. */
  most: number;
  /** Trusted proxies in front. All connections come from the last of them, so requests count instead. */
  hops: number;
  /** Peers without a limit; default: this host. */
  isExempt?: (address: string) => boolean;
};

/** A connection; `isCounted` until it closes or other limits hold for it. */
type Counted = { network: string; isCounted: boolean };

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

export class ConnectionLimit {
  readonly #options: ConnectionLimitOptions;
  readonly #counts = new Map<string, number>();
  /** Open connections by the peer's address and port. */
  readonly #connections = new Map<string, Counted>();

  constructor(options: ConnectionLimitOptions) {
    this.#options = options;
  }

  /** Ends connections beyond the limit before any byte of them is read. */
  watch(server: Server): void {
    if (this.#options.hops > 0) return;
    server.on("connection", (socket: Socket) => {
      const { remoteAddress } = socket;
      if (remoteAddress === undefined) return;
      const { isExempt = isThisHost } = this.#options;
      if (isExempt(remoteAddress)) return;
      const network = networkOf(remoteAddress);
      if (!this.#enter(network)) {
        socket.destroy();
        return;
      }
      const peer = peerOf(socket);
      const counted = { network, isCounted: true };
      this.#connections.set(peer, counted);
      socket.once("close", () => {
        this.#release(counted);
        // A new connection can have the same port before this one is known to be closed.
        if (this.#connections.get(peer) === counted) this.#connections.delete(peer);
      });
    });
  }

  /** Counts a connection no longer, because other limits hold for what it has become. */
  release(socket: { remoteAddress?: string; remotePort?: number }): void {
    this.#release(this.#connections.get(peerOf(socket)));
  }

  /** The listener for requests; behind proxies it refuses those beyond the limit. */
  around(listener: Listener): Listener {
    const { hops, most } = this.#options;
    if (hops === 0) return listener;
    return (request, response) => {
      const network = networkOfClient(request, hops) ?? "unknown";
      if (this.#enter(network)) {
        response.once("close", () => this.#leave(network));
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

  #enter(network: string): boolean {
    const count = this.#counts.get(network) ?? 0;
    if (count >= this.#options.most) return false;
    this.#counts.set(network, count + 1);
    return true;
  }

  #leave(network: string): void {
    const left = (this.#counts.get(network) ?? 1) - 1;
    if (left > 0) this.#counts.set(network, left);
    else this.#counts.delete(network);
  }

  #release(counted: Counted | undefined): void {
    if (counted?.isCounted !== true) return;
    counted.isCounted = false;
    this.#leave(counted.network);
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
