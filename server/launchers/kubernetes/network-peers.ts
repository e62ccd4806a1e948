/** Peers of a team's NetworkPolicy, from an operator's settings and the team's outgoing network policy. */
import { isIP } from "node:net";
import type { V1NetworkPolicyPeer } from "@kubernetes/client-node";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import { isRange } from "#server/contracts/egress-entry.ts";
import { CLOSED, PRIVATE } from "#server/egress/addresses.ts";
import { contains, leftOutOf, type Peer } from "./settings.ts";

/** All addresses of a family: the only peers that a team's policy narrows. */
const INTERNET = ["0.0.0.0/0", "::/0"];
/** IPv4 addresses in IPv6 spelling; the API server refuses such a range. */
const MAPPED = "::ffff:0:0/96";

/** A peer as the settings name it. */
export function policyPeer(peer: Peer): V1NetworkPolicyPeer {
  if ("namespace" in peer) {
    const pods = peer.pods === undefined ? {} : { podSelector: { matchLabels: peer.pods } };
    return { namespaceSelector: { matchLabels: peer.namespace }, ...pods };
  }
  return block(peer.addresses);
}

/**
 * Peers that a team's workspaces reach within a peer of the settings. Pods and narrower networks are servers that the
 * operator names (broker, GPU servers, mirrors), and stay open in every mode. Names of the policy are left out, because
 * a NetworkPolicy cannot express names. No peers: no rule, because a rule without peers opens all.
 */
export function egressPeers(peer: Peer, { mode, allow }: EgressPolicy): V1NetworkPolicyPeer[] {
  if ("namespace" in peer || !INTERNET.includes(peer.addresses)) return [policyPeer(peer)];
  if (mode === "none") return [];
  const ranges = allow
    .filter(isRange)
    .map(asNetwork)
    .filter((range) => isOpenable(range, peer.addresses));
  const opened = ranges.map((range) => block(range));
  const isSameFamily = (network: string) => contains(peer.addresses, baseOf(network));
  return mode === "list" ? opened : [block(peer.addresses, PRIVATE.filter(isSameFamily)), ...opened];
}

function block(cidr: string, closed: readonly string[] = []): V1NetworkPolicyPeer {
  const except = [...leftOutOf(cidr), ...closed];
  return { ipBlock: { cidr, ...(except.length === 0 ? {} : { except }) } };
}

/** Whether a range is of the family of `internet`, and not inside a network that stays closed. */
function isOpenable(range: string, internet: string): boolean {
  const closed = [...CLOSED, ...leftOutOf(internet), MAPPED];
  return contains(internet, baseOf(range)) && !closed.some((network) => isInside(range, network));
}

function isInside(inner: string, outer: string): boolean {
  return bitsOf(inner) >= bitsOf(outer) && contains(outer, baseOf(inner));
}

function asNetwork(range: string): string {
  return range.includes("/") ? range : `${range}/${isIP(range) === 6 ? 128 : 32}`;
}

const baseOf = (network: string) => network.split("/")[0] ?? "";
const bitsOf = (network: string) => Number(network.split("/")[1]);
