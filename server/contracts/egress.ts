/** Outgoing network policy of a team: the same words for local workspaces, pods and VMs. */
import { z } from "zod";
import { editedVersion, instant, teamId, version } from "./common.ts";
import { isEntry, MOST_ENTRIES, NO_ENTRY } from "./egress-entry.ts";

/** `all`: the internet. `list`: entries of the list alone. `none`: nothing. */
export const egressMode = z.enum(["all", "list", "none"]);

/** A host name, `*.` before a name for all names below it, an address, or a range in CIDR notation. */
export const egressEntry = z.string().trim().toLowerCase().min(1).max(253).refine(isEntry, NO_ENTRY);

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
export const DEFAULT_EGRESS_POLICY: EgressPolicy = { mode: "all", allow: [] };

/** `version` counts the edits of the policy. */
export const egressPolicyView = z.strictObject({ ...egressPolicy.shape, version });
export type EgressPolicyView = z.infer<typeof egressPolicyView>;

export const setEgressPolicyInput = z.strictObject({ ...egressPolicy.shape, teamId, version: editedVersion });
export type SetEgressPolicyInput = z.input<typeof setEgressPolicyInput>;

/** Connections of a workspace that its team's policy refused, newest first; one entry for each host and port. */
export const egressRefusalList = z.strictObject({
  refusals: z.array(
    z.strictObject({
      /** A name or an address, as the program asked for it. */
      host: z.string(),
      port: z.int(),
      /** The rule of the last refusal, as a sentence. */
      reason: z.string(),
      count: z.int(),
      lastAt: instant,
    }),
  ),
});
export type EgressRefusalList = z.infer<typeof egressRefusalList>;
