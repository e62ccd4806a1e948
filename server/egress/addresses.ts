/**
 * Addresses that a workspace's connections may lead to. Judged by address after the name is resolved, and the connection
 * then goes to that very address: a name that resolves to something else a moment later changes nothing.
 */
import { readFileSync } from "node:fs";
import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";

/**
 * `public`: the internet. `private`: a range of somebody's own network, reached only where a policy names it.
 * `closed`: this host, its gateway, link-local addresses (the metadata service of clouds), groups, and IPv6 addresses
 * that stand for IPv4 ones; no policy opens these.
 */
export type Reach = "public" | "private" | "closed";

/** Ranges of private networks. */
export const PRIVATE = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15", "fc00::/7"];
/** Ranges that no policy opens. */
export const CLOSED = [
  ...["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "224.0.0.0/3"],
  // Unspecified, loopback and IPv4-compatible; NAT64; Teredo; 6to4; site-local, link-local and groups.
  ...["::/96", "64:ff9b::/32", "2001::/32", "2002::/16", "fec0::/10", "fe80::/10", "ff00::/8"],
];

/** A host's own addresses and those of its gateways. */
export type Surroundings = { own: readonly string[]; gateways: readonly string[] };

/** Judges addresses; `surroundings` of this host unless given. */
export class AddressRules {
  readonly #private = blockList(PRIVATE);
  readonly #closed = blockList(CLOSED);
  readonly #surroundings: () => Surroundings;

  /** `surroundings` is asked each time, because a host's addresses change. */
  constructor(surroundings: () => Surroundings = surroundingsOfHost) {
    this.#surroundings = surroundings;
  }

  /** The reach of an IP address; text that is none is closed. */
  reach(address: string): Reach {
    const plain = withoutMapping(address);
    const family = isIP(plain) === 6 ? "ipv6" : "ipv4";
    if (isIP(plain) === 0 || this.#closed.check(plain, family)) return "closed";
    const { own, gateways } = this.#surroundings();
    if (blockList([...own, ...gateways]).check(plain, family)) return "closed";
    return this.#private.check(plain, family) ? "private" : "public";
  }
}

/** Addresses and ranges (CIDR) as a list that can be asked; what is neither is left out. */
export function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", length] = range.split("/");
    const version = isIP(address);
    if (version === 0) continue;
    const family = version === 6 ? "ipv6" : "ipv4";
    list.addSubnet(address, length === undefined ? (version === 6 ? 128 : 32) : Number(length), family);
  }
  return list;
}

/** `::ffff:10.0.0.1` and `::ffff:a00:1` are IPv4 addresses in another spelling. */
function withoutMapping(address: string): string {
  const bare = address.split("%")[0] ?? "";
  if (isIP(bare) !== 6) return bare;
  const { hostname } = new URL(`http://[${bare}]/`);
  const mapped = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname);
  if (mapped === null) return bare;
  const [high, low] = [Number.parseInt(mapped[1] ?? "", 16), Number.parseInt(mapped[2] ?? "", 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

const KEPT_MS = 10_000;
let kept: { at: number; surroundings: Surroundings } | undefined;

/** This host's addresses and default gateways, at most ten seconds old. */
export function surroundingsOfHost(): Surroundings {
  if (kept !== undefined && Date.now() - kept.at < KEPT_MS) return kept.surroundings;
  const own = Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []);
  kept = { at: Date.now(), surroundings: { own, gateways: gatewaysOfHost() } };
  return kept.surroundings;
}

/** From the kernel's tables of routes; none where these cannot be read. */
function gatewaysOfHost(): string[] {
  const rows = (file: string) => {
    try {
      return readFileSync(file, "utf8").trim().split("\n");
    } catch {
      return [];
    }
  };
  const ipv4 = rows("/proc/net/route")
    .slice(1)
    .map((row) => row.split("\t")[2] ?? "")
    .filter((hex) => /^[0-9A-F]{8}$/.test(hex) && hex !== "00000000")
    // The kernel prints the address as a number of this machine's byte order.
    .map((hex) =>
      (hex.match(/../g) ?? [])
        .reverse()
        .map((byte) => Number.parseInt(byte, 16))
        .join("."),
    );
  const ipv6 = rows("/proc/net/ipv6_route")
    .map((row) => row.trim().split(/\s+/)[4] ?? "")
    .filter((hex) => /^[0-9a-f]{32}$/.test(hex) && !/^0+$/.test(hex))
    .map((hex) => (hex.match(/.{4}/g) ?? []).join(":"));
  return [...ipv4, ...ipv6];
}
