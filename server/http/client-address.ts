/** Where a request came from, as far as that can be trusted: for the audit and for limits by address. */
import { isIP } from "node:net";

/** What a process of ours writes into each request before anybody reads it; a client's own is overwritten. */
const HEADER = "x-sluice-client-address";

/**
 * The address behind so many trusted proxies. Each of them has written at the end of `X-Forwarded-For` whom it saw, so
 * the client is the entry that the first of them wrote, counted from the right; what stands before it anybody may have
 * claimed. With no proxy, and where fewer entries stand there than proxies should have written, it is the address that
 * the socket has.
 */
export function addressBehind(hops: number, forwarded: string | undefined, peer: string | undefined): string | null {
  const entries = forwarded?.split(",").map((entry) => bare(entry.trim())) ?? [];
  const seen = hops === 0 ? undefined : entries.at(-hops);
  if (seen !== undefined && isIP(seen) !== 0) return seen;
  return peer === undefined ? null : bare(peer);
}

/** Without a port, brackets, or the way in which IPv6 sockets write IPv4: `[::1]:80` and `::ffff:10.0.0.1`. */
function bare(text: string): string {
  const [, bracketed] = /^\[([^\]]*)\](?::\d+)?$/.exec(text) ?? [];
  const [, v4] = /^(?:::ffff:)?(\d+\.\d+\.\d+\.\d+)(?::\d+)?$/i.exec(bracketed ?? text) ?? [];
  return v4 ?? bracketed ?? text;
}

type Incoming = { headers: Record<string, string | string[] | undefined>; socket: { remoteAddress?: string } };

function addressOf(request: Incoming, hops: number): string | null {
  const given = request.headers["x-forwarded-for"];
  const forwarded = Array.isArray(given) ? given.join(",") : given;
  return addressBehind(hops, forwarded, request.socket.remoteAddress);
}

/** The key of rate limits: an IPv4 address, or an IPv6 /64, because one subscriber has 2^64 addresses. */
export function networkOf(given: string): string {
  const address = bare(given.split("%")[0] ?? "");
  if (isIP(address) !== 6) return address;
  const [head = "", tail] = address.toLowerCase().split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":").map((group) => group.replace(/^0+(?=.)/, "")));
  const [before, after] = [groups(head), groups(tail ?? "")];
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - before.length - after.length }, () => "0");
  return `${[...before, ...zeros, ...after].slice(0, 4).join(":")}::/64`;
}

/** The network of a request's client. */
export function networkOfClient(request: Incoming, hops: number): string | null {
  const address = addressOf(request, hops);
  return address === null ? null : networkOf(address);
}

/** Writes the client's address into a request of Node's HTTP server, because handlers cannot see the socket. */
export function noteClientAddress(request: Incoming, hops: number): void {
  const address = addressOf(request, hops);
  if (address === null) delete request.headers[HEADER];
  else request.headers[HEADER] = address;
}

/** What was written there; null: nobody knows. */
export function clientAddress(headers: Pick<Headers, "get">): string | null {
  return headers.get(HEADER);
}
