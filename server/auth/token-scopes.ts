/** What a personal access token may do of what its person may. */
import type { Action } from "#server/auth/authorize.ts";
import type { TokenScope } from "#server/contracts/access-token.ts";

/** Changes nothing that anybody could see. */
const READS: ReadonlySet<Action> = new Set<Action>([
  ...(["setup.read", "setup-step.list", "session.read", "session.list", "user.list", "identity-group.list"] as const),
  ...(["team.list", "team.read", "team.read-budget", "team.list-policies", "calendar.list", "stop.list"] as const),
  ...([
    "reservation.list",
    "quota-request.list",
    "access-token.list",
    "image.list",
    "image.list-versions",
    "image.read-version",
  ] as const),
  ...(["dataset.list", "dataset.read", "workspace.list", "workspace.read", "workspace.read-link"] as const),
  ...(["lease.list", "lease.explain", "pool.read", "utilisation.read", "cost.read", "what-if.ask"] as const),
  /** A role is asked about, nothing is done: the launch itself is of `workspaces`. */
  ...(["workspace-size.list", "workspace-size.choose-freely"] as const),
  ...([
    "health.read",
    "conformance.list",
    "gpu-server.list",
    "audit.list",
    "notice.list",
    "live.subscribe",
    "api.describe",
  ] as const),
]);

/** What people do with workspaces, leases and requests of their own. */
const WORKSPACES: ReadonlySet<Action> = new Set<Action>([
  ...(["workspace.create", "workspace.start", "workspace.stop", "workspace.remove", "workspace.restart"] as const),
  ...(["workspace.restore", "workspace.delete-files"] as const),
  ...(["workspace.duplicate", "workspace.work", "workspace.change", "workspace.unshare", "workspace.leave"] as const),
  ...(["lease.end", "lease.extend", "lease.leave-queue", "quota-request.ask", "notice.mark-read"] as const),
]);

/** What a token must have for it. Whatever is new is of `manage` until somebody says otherwise. */
export function scopeOf(action: Action): TokenScope {
  if (READS.has(action)) return "read";
  return WORKSPACES.has(action) ? "workspaces" : "manage";
}
