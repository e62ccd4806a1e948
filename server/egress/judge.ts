/** Decides whether a workspace may connect to a destination, and to which addresses of it. */
import { promises as dns, type LookupAddress } from "node:dns";
import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import { isRange } from "#server/contracts/egress-entry.ts";
import { type AddressRules, blockList } from "./addresses.ts";

/** Addresses of one name that are looked at; an answer of a resolver may hold thousands. */
const MOST_ADDRESSES = 32;

export type Destination = { host: string; port: number };

/** `refused`: a sentence with the rule and the next step. `unknown`: a sentence that says why there is no address. */
export type EgressDecision = { addresses: LookupAddress[] } | { refused: string } | { unknown: string };

export type JudgeInput = {
  destination: Destination;
  policy: EgressPolicy;
  rules: AddressRules;
  /** `host:port` of each GPU server: open under every policy, because gpud asks each client for a session token. */
  gpuServers: ReadonlySet<string>;
  /** `host:port` of the package indexes that the operator has set: judged as public at any address. */
  indexes: ReadonlySet<string>;
  resolve?: (host: string) => Promise<LookupAddress[]>;
};

/** Judges one destination: resolves all its addresses and returns the open ones. */
export async function judge(input: JudgeInput): Promise<EgressDecision> {
  const { destination, policy, rules, gpuServers, indexes, resolve = resolveAll } = input;
  const host = canonicalHost(destination.host);
  if (host === undefined)
    return { unknown: `"${destination.host.slice(0, 100)}" is neither a host name nor an address.` };
  const asked = hostAndPort({ host, port: destination.port });
  const isGpuServer = gpuServers.has(asked);
  if (policy.mode === "none" && !isGpuServer) {
    return { refused: "The outgoing network policy of this team is: none. Ask an admin to change the policy." };
  }
  const named = isNamed(host, policy);
  const ranges = blockList(policy.allow.filter(isRange));
  const inRange = ({ address, family }: LookupAddress) => ranges.check(address, family === 6 ? "ipv6" : "ipv4");
  if (policy.mode === "list" && !named && !isGpuServer && isIP(host) === 0 && !policy.allow.some(isRange)) {
    return { refused: notListed(host) };
  }
  let found: LookupAddress[];
  try {
    found = (await resolve(host)).slice(0, MOST_ADDRESSES);
  } catch (error) {
    return { unknown: `${host} has no address (${error instanceof Error ? error.message : "unknown"}).` };
  }
  if (isGpuServer) {
    // A GPU server reports its own address. Of the closed ones, only addresses of this host are those of a server here.
    const possible = found.filter(({ address }) => rules.reach(address) !== "closed" || rules.isOwn(address));
    if (possible.length > 0) return { addresses: possible };
  }
  const open = found.filter((address) => {
    const reach = indexes.has(asked) ? "public" : rules.reach(address.address);
    if (reach === "closed") return false;
    if (inRange(address)) return true;
    return reach === "public" && (policy.mode === "all" || named);
  });
  if (open.length > 0) return { addresses: open };
  return { refused: refusal(host, found, policy, rules) };
}

/** A destination as a key of `gpuServers` and `indexes`. */
export function hostAndPort({ host, port }: Destination): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

function refusal(host: string, found: LookupAddress[], policy: EgressPolicy, rules: AddressRules): string {
  const reaches = new Set(found.map(({ address }) => rules.reach(address)));
  if (reaches.size === 1 && reaches.has("closed")) return closedHere(host);
  if (policy.mode === "list") return notListed(host);
  return `${host} has a private address outside the ranges of this team's outgoing network policy. Ask an admin to add a range.`;
}

/** The refusal of an address that no policy opens. */
export const closedHere = (host: string): string =>
  `${host} has an address of this host, its gateway or a local link, which is closed to all workspaces.`;

const notListed = (host: string): string =>
  `${host} is not on the list of this team's outgoing network policy. Ask an admin to add the host.`;

/** Whether the list contains the name, or `*.` and a parent of the name. */
export function isNamed(host: string, { allow }: EgressPolicy): boolean {
  return allow.some((entry) => (entry.startsWith("*.") ? host.endsWith(entry.slice(1)) : entry === host));
}

/**
 * The form of a host for comparison and lookup: lower case, without a final dot, `[::1]` without brackets. Undefined for
 * text that is neither a name nor an address. Some resolvers read `127.1` and `0x7f000001` as addresses.
 */
export function canonicalHost(host: string): string | undefined {
  const bare = host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
  if (isIP(bare) !== 0) return bare.toLowerCase();
  const name = domainToASCII(bare).replace(/\.$/, "");
  if (name === "" || name.length > 253 || isIP(name) !== 0) return undefined;
  const labels = name.split(".");
  if (!labels.every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label))) return undefined;
  return /^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? "") ? undefined : name;
}

async function resolveAll(host: string): Promise<LookupAddress[]> {
  return await dns.lookup(host, { all: true, verbatim: true });
}
