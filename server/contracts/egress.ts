/** Outgoing network policy of a team: the same words for local workspaces, pods and VMs. */
import { isIP } from "node:net";
import { z } from "zod";

/** `all`: the internet. `list`: entries of the list alone. `none`: nothing. */
export const egressMode = z.enum(["all", "list", "none"]);

/** Longest list of a team. */
export const MOST_ENTRIES = 100;

/** A host name, `*.` before a name for all names below it, an address, or a range in CIDR notation. */
export const egressEntry = z
  .string()
  .trim()
  .toLowerCase()
  .min(1)
  .max(253)
  .refine(isEntry, "This is no host name (pypi.org, *.example.org), address or range (10.1.0.0/16).");

/**
 * Where workspaces of a team may connect to. In every mode this host, its gateway and link-local addresses stay closed.
 * A private address needs a range in `allow`, with `all` too; a name opens public addresses only.
 */
export const egressPolicy = z.object({
  mode: egressMode,
  allow: z.array(egressEntry).max(MOST_ENTRIES),
});
export type EgressPolicy = z.infer<typeof egressPolicy>;

/** The policy of a team for which nothing is set. */
export const OPEN: EgressPolicy = { mode: "all", allow: [] };

/** Whether an entry is an address or a range, not a name. */
export function isRange(entry: string): boolean {
  const [address = "", length, ...rest] = entry.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= (version === 6 ? 128 : 32));
}

function isEntry(entry: string): boolean {
  if (isRange(entry)) return true;
  const name = entry.startsWith("*.") ? entry.slice(2) : entry;
  const labels = name.split(".");
  // A last label of digits is an address in a spelling that some resolvers understand.
  return (
    labels.every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label)) &&
    !/^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? "")
  );
}
