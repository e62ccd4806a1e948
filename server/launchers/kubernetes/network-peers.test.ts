import { BlockList, isIP } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type EgressPolicy, egressPolicy } from "#server/contracts/egress.ts";
import { egressPeers } from "./network-peers.ts";
import { networkPolicy } from "./objects.ts";
import { leftOutOf, type Peer, parseSettings } from "./settings.ts";

const internet = { addresses: "0.0.0.0/0", ports: [443] };
const internet6 = { addresses: "::/0", ports: [443] };
const broker: Peer = { namespace: { name: "sluice" }, pods: { component: "broker" }, ports: [3001] };
const gpuServers = { addresses: "10.20.0.0/16", ports: [3010] };
const policy = (mode: EgressPolicy["mode"], ...allow: string[]) => egressPolicy.parse({ mode, allow });
const cidrs = (peer: Peer, given: EgressPolicy) => egressPeers(peer, given).map(({ ipBlock }) => ipBlock?.cidr);

describe("egress peers of a team", () => {
  it("are public addresses and the named ranges with all", () => {
    const [world, ...ranges] = egressPeers(internet, policy("all", "10.1.0.0/16", "fd12::/16", "pypi.org"));
    expect(world?.ipBlock?.cidr).toBe("0.0.0.0/0");
    expect(world?.ipBlock?.except).toEqual(expect.arrayContaining(["10.0.0.0/8", "192.168.0.0/16", "169.254.0.0/16"]));
    expect(ranges).toEqual([{ ipBlock: { cidr: "10.1.0.0/16" } }]);
    const [world6, ...ranges6] = egressPeers(internet6, policy("all", "10.1.0.0/16", "fd12::/16"));
    expect(world6?.ipBlock?.except).toEqual(expect.arrayContaining(["fc00::/7", "fe80::/10"]));
    expect(ranges6).toEqual([{ ipBlock: { cidr: "fd12::/16" } }]);
  });

  it("are ranges and addresses of the list alone, without its names", () => {
    const list = policy("list", "pypi.org", "*.example.org", "10.1.0.0/16", "203.0.113.7", "2a00::1");
    expect(cidrs(internet, list)).toEqual(["10.1.0.0/16", "203.0.113.7/32"]);
    expect(cidrs(internet6, list)).toEqual(["2a00::1/128"]);
  });

  it("are none with none, or with a list of names", () => {
    expect(egressPeers(internet, policy("none", "10.1.0.0/16"))).toEqual([]);
    expect(egressPeers(internet, policy("list", "pypi.org"))).toEqual([]);
  });

  it("hold the servers that an operator names, in every mode", () => {
    for (const mode of ["all", "list", "none"] as const) {
      expect(cidrs(gpuServers, policy(mode))).toEqual(["10.20.0.0/16"]);
      expect(egressPeers(broker, policy(mode))).toHaveLength(1);
    }
  });

  it("leave closed networks out, alone and inside a larger range", () => {
    const closed = [
      "169.254.169.254",
      "127.0.0.1",
      "100.100.100.200/32",
      "::1",
      "fe80::/10",
      "fd00:ec2::254",
      "::ffff:10.0.0.0/104",
    ];
    const list = policy("list", ...closed);
    expect([...egressPeers(internet, list), ...egressPeers(internet6, list)]).toEqual([]);
    expect(egressPeers(internet, policy("list", "169.0.0.0/8"))).toEqual([
      { ipBlock: { cidr: "169.0.0.0/8", except: ["169.254.0.0/16"] } },
    ]);
  });

  it("never reach more than the operator's peer", () => {
    const octet = fc.integer({ min: 0, max: 255 });
    const random = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join("."));
    const address = fc.oneof(random, fc.constantFrom("169.254.169.254", "100.100.100.200", "168.63.129.16"));
    const range = fc.tuple(address, fc.integer({ min: 0, max: 32 })).map(([base, bits]) => `${base}/${bits}`);
    const before = { cidr: "0.0.0.0/0", except: leftOutOf("0.0.0.0/0") };
    fc.assert(
      fc.property(
        fc.constantFrom("all" as const, "list" as const),
        fc.array(range, { maxLength: 4 }),
        address,
        (mode, allow, to) => {
          const reached = egressPeers(internet, { mode, allow }).some(({ ipBlock }) => ipBlock && opens(ipBlock, to));
          return !reached || opens(before, to);
        },
      ),
    );
  });
});

describe("a team's NetworkPolicy", () => {
  const settings = parseSettings({
    ...{ environments: {}, sizes: {}, home: { size: "1Gi" }, team: {} },
    network: { from: [gpuServers], to: [broker, gpuServers, internet] },
  });
  const egress = (given: EgressPolicy) => networkPolicy(settings, "team-1", given).spec?.egress;

  it("has no rule without peers, which would open everything", () => {
    expect(egress(policy("none"))).toHaveLength(3);
    expect(egress(policy("list", "pypi.org"))).toEqual(egress(policy("none")));
    for (const rule of egress(policy("none")) ?? []) expect(rule.to).not.toEqual([]);
  });

  it("opens a range on the ports of the operator's peer", () => {
    expect(egress(policy("list", "10.1.0.0/16"))?.at(-1)).toEqual({
      to: [{ ipBlock: { cidr: "10.1.0.0/16" } }],
      ports: [{ port: 443, protocol: "TCP" }],
    });
  });
});

function opens({ cidr, except = [] }: { cidr: string; except?: string[] }, address: string): boolean {
  const isIn = (network: string) => {
    const [base = "", bits] = network.split("/");
    const list = new BlockList();
    list.addSubnet(base, Number(bits), isIP(base) === 6 ? "ipv6" : "ipv4");
    return list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
  };
  return isIn(cidr) && !except.some(isIn);
}
