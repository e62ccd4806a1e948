/**
 * Address ranges that are open, private or closed to workspaces. A name is resolved once, and the connection uses the
 * judged address, so DNS rebinding has no effect.
 */
import { readFileSync } from "node:fs";
import { BlockList, isIP, type Socket } from "node:net";
import { networkInterfaces } from "node:os";

/**
 * `public`: the internet. `private`: a range of a private network or a network of this host, which may have public
 * addresses; open only when a policy names the range.
 * `closed`: this host, its gateway, link-local addresses (metadata services of clouds), multicast addresses, and IPv6
 * addresses that embed IPv4 addresses. No policy opens a closed address.
 */
export type Reach = "public" | "private" | "closed";

/** Ranges of private networks. */
export const PRIVATE = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15", "fc00::/7"];
/** Ranges that no policy opens. */
export const CLOSED = [
  ...["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "224.0.0.0/3"],
  // Unspecified, loopback and IPv4-compatible; NAT64; Teredo; 6to4; site-local, link-local and multicast.
  ...["::/96", "::ffff:0:0:0/96", "64:ff9b::/32", "2001::/32", "2002::/16", "fec0::/10", "fe80::/10", "ff00::/8"],
  // Metadata services of clouds that are not link-local: Azure, Alibaba, AWS, Google.
  ...["168.63.129.16", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254"],
];

/** A host's own addresses, those of its gateways, and the ranges of the networks that it is part of. */
export type Surroundings = { own: readonly string[]; gateways: readonly string[]; networks: readonly string[] };

/** Judges addresses by the fixed ranges and by `surroundings` (default: those of this host). */
export class AddressRules {
  readonly #private = blockList(PRIVATE);
  readonly #closed = blockList(CLOSED);
  readonly #surroundings: () => Surroundings;
  /** Lists of the surroundings that were last asked for: building them for each address would take long. */
  #built: { of: Surroundings; own: BlockList; gateways: BlockList; networks: BlockList } | undefined;

  /** `surroundings` is called for each address, because a host's addresses change. */
  constructor(surroundings: () => Surroundings = surroundingsOfHost) {
    this.#surroundings = surroundings;
  }

  /** The reach of an IP address. Other text is closed. */
  reach(address: string): Reach {
    const plain = withoutMapping(address);
    const family = isIP(plain) === 6 ? "ipv6" : "ipv4";
    if (isIP(plain) === 0 || this.#closed.check(plain, family)) return "closed";
    const { own, gateways, networks } = this.#lists();
    if (own.check(plain, family) || gateways.check(plain, family)) return "closed";
    return this.#private.check(plain, family) || networks.check(plain, family) ? "private" : "public";
  }

  /** Whether this host has the address. */
  isOwn(address: string): boolean {
    const plain = withoutMapping(address);
    if (plain === "::1" || plain.startsWith("127.")) return true;
    return isIP(plain) !== 0 && this.#lists().own.check(plain, isIP(plain) === 6 ? "ipv6" : "ipv4");
  }

  /**
   * Whether a connection that was made ends at this host. The address may have come after it was judged, and a local
   * route delivers addresses that no interface has; the kernel then takes the same address for both ends.
   */
  endsHere({ localAddress, remoteAddress = "" }: Pick<Socket, "localAddress" | "remoteAddress">): boolean {
    return (
      localAddress === remoteAddress ||
      surroundingsWith(networkInterfaces(), []).own.includes(withoutMapping(remoteAddress))
    );
  }

  #lists(): { own: BlockList; gateways: BlockList; networks: BlockList } {
    const of = this.#surroundings();
    if (this.#built?.of !== of) {
      const [own, gateways, networks] = [blockList(of.own), blockList(of.gateways), blockList(of.networks)];
      this.#built = { of, own, gateways, networks };
    }
    return this.#built;
  }
}

/** A list of addresses and ranges (CIDR). Other text is left out. */
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

/** This host's addresses, default gateways and networks, at most ten seconds old. */
export function surroundingsOfHost(): Surroundings {
  if (kept !== undefined && performance.now() - kept.at < KEPT_MS) return kept.surroundings;
  kept = { at: performance.now(), surroundings: surroundingsWith(networkInterfaces(), gatewaysOfHost()) };
  return kept.surroundings;
}

/** The surroundings of a host with these network interfaces. */
export function surroundingsWith(
  interfaces: ReturnType<typeof networkInterfaces>,
  gateways: readonly string[],
): Surroundings {
  const all = Object.values(interfaces).flatMap((each) => each ?? []);
  const networks = all.flatMap(({ cidr }) => cidr ?? []);
  return { own: all.map(({ address }) => address), gateways, networks };
}

/** Gateways from the kernel's routing tables; empty when the tables cannot be read. */
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
