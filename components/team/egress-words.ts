import type { EgressPolicy } from "#server/contracts/egress.ts";
import { isEntry, MOST_ENTRIES } from "#server/contracts/egress-entry.ts";

export const EGRESS_MODES: Record<EgressPolicy["mode"], { label: string; does: string; list: string }> = {
  all: {
    label: "Public addresses",
    does: "Workspaces reach the internet, and the private ranges in the list.",
    list: "Private addresses that workspaces may reach: one address or range (10.1.0.0/16) per line.",
  },
  list: {
    label: "Listed destinations",
    does: "Workspaces reach only the destinations in the list.",
    list: "One per line: a host name (pypi.org), all names below a name (*.example.org), an address, or a range (10.1.0.0/16).",
  },
  none: {
    label: "No connections",
    does: "Workspaces reach only GPU servers and Sluice.",
    list: "This mode does not use the list. It is kept for the other modes.",
  },
};

export const ALWAYS_CLOSED =
  "The host of the workspace, its gateway and link-local addresses are closed in every mode. A private address needs a range, because a name opens public addresses only.";
export const ON_A_CLUSTER =
  "On the Kubernetes cluster, only addresses and ranges are opened. Names in the list stay closed there.";

/** Entries of a list with one per line, and a sentence for each line that is none. Empty lines count as lines. */
export function readEntries(text: string): { entries: string[]; errors: string[] } {
  const lines = text.split("\n").map((line, index) => ({ entry: line.trim().toLowerCase(), line: index + 1 }));
  const filled = lines.filter(({ entry }) => entry !== "");
  const entries = [...new Set(filled.map(({ entry }) => entry))];
  const errors = filled.filter(({ entry }) => !isEntry(entry) || entry.length > 253).map(refusal);
  if (entries.length > MOST_ENTRIES) {
    errors.push(`The list has ${entries.length} entries. Remove some: ${MOST_ENTRIES} are allowed.`);
  }
  return { entries, errors };
}

function refusal({ entry, line }: { entry: string; line: number }): string {
  const shown = entry.length > 60 ? `${entry.slice(0, 60)}…` : entry;
  const host = /^[a-z]+:\/\/([^/:]+)/.exec(entry)?.[1] ?? /^([^/:]+):\d+$/.exec(entry)?.[1];
  if (host !== undefined && isEntry(host)) return `Line ${line}, "${shown}": write the host alone, ${host}.`;
  return `Line ${line}, "${shown}": write a host name, an address or a range.`;
}
