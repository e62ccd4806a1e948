/** Whether a connection that a workspace asks for is made, and to which addresses. */
import { promises as dns, type LookupAddress } from "node:dns";
import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import { isRange } from "#server/contracts/egress-entry.ts";
import { within } from "#server/within.ts";
import { type AddressRules, blockList } from "./addresses.ts";

/** A resolver that does not answer holds no connection longer than this. */
const RESOLVE_MS = 10_000;

export type Destination = { host: string; port: number };

/** `refused` is a sentence that names the rule; `unknown` one that says why the name has no address. */
export type Verdict = { addresses: LookupAddress[] } | { refused: string } | { unknown: string };

export type JudgeInput = {
  destination: Destination;
  policy: EgressPolicy;
  rules: AddressRules;
  /** `host:port` of each GPU server of the installation: open to every workspace, which proves itself there. */
  gpuServers: ReadonlySet<string>;
  /** `host:port` of the package indexes that the operator has set: judged as public wherever they stand. */
  indexes: ReadonlySet<string>;
  resolve?: (host: string) => Promise<LookupAddress[]>;
};

/** Judges one destination. All addresses of a name are resolved here, and refused ones are left out. */
export async function judge(input: JudgeInput): Promise<Verdict> {
  const { destination, policy, rules, gpuServers, indexes, resolve = resolveAll } = input;
  const host = canonicalHost(destination.host);
  if (host === undefined) return { unknown: `"${destination.host.slice(0, 100)}" is no host name and no address.` };
  const asked = hostAndPort({ host, port: destination.port });
  const isGpuServer = gpuServers.has(asked);
  if (policy.mode === "none" && !isGpuServer) {
    return { refused: "The outgoing network policy of this team is: none." };
  }
  const named = isNamed(host, policy);
  const ranges = blockList(policy.allow.filter(isRange));
  const inRange = ({ address, family }: LookupAddress) => ranges.check(address, family === 6 ? "ipv6" : "ipv4");
  if (policy.mode === "list" && !named && !isGpuServer && isIP(host) === 0 && !policy.allow.some(isRange)) {
    return { refused: `${host} is not on the list of this team's outgoing network policy.` };
  }
  let found: LookupAddress[];
  try {
    found = await resolve(host);
  } catch (error) {
    return { unknown: `${host} has no address (${error instanceof Error ? error.message : "unknown"}).` };
  }
  if (isGpuServer) return { addresses: found };
  const open = found.filter((address) => {
    const reach = indexes.has(asked) ? "public" : rules.reach(address.address);
    if (reach === "closed") return false;
    if (inRange(address)) return true;
    return reach === "public" && (policy.mode === "all" || named);
  });
  if (open.length > 0) return { addresses: open };
  return { refused: refusal(host, found, policy, rules) };
}

/** What a destination is called in the list of GPU servers. */
export function hostAndPort({ host, port }: Destination): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

function refusal(host: string, found: LookupAddress[], policy: EgressPolicy, rules: AddressRules): string {
  const reaches = new Set(found.map(({ address }) => rules.reach(address)));
  if (reaches.size === 1 && reaches.has("closed"))
    return `${host} leads to the machine that workspaces run on, which is closed.`;
  if (policy.mode === "list") return `${host} is not on the list of this team's outgoing network policy.`;
  return `${host} leads to a private address, and no range of this team's outgoing network policy has it.`;
}

/** Whether an entry of the list is this name or stands above it. */
function isNamed(host: string, { allow }: EgressPolicy): boolean {
  return allow.some((entry) => (entry.startsWith("*.") ? host.endsWith(entry.slice(1)) : entry === host));
}

/**
 * A host as it is compared and resolved: lower case, without a final dot, `[::1]` without its brackets. Undefined for
 * what is neither a name nor an address, such as `127.1` or `0x7f000001`, which some resolvers take for addresses.
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
  return await within(RESOLVE_MS, dns.lookup(host, { all: true, verbatim: true }), () => {
    throw new Error("the resolver did not answer in time");
  });
}
