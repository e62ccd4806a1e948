/** The one decision about who may do what, used by HTTP handlers, server actions and WebSocket upgrades alike. */

import type { Principal, UserPrincipal } from "#server/auth/principal.ts";
import { scopeOf } from "#server/auth/token-scopes.ts";
import type { TokenScope } from "#server/contracts/access-token.ts";
import { SluiceError } from "#server/errors.ts";

/** What is acted on, as far as a rule asks. */
export type Resource = {
  teamId?: string;
  /** The person it belongs to. */
  ownerId?: string;
  workspaceId?: string;
  /** What the owner of the workspace has given to whoever asks (server/services/workspace/given-role.ts). */
  role?: "viewer" | "editor" | null;
  serverId?: string;
};

type Rule = (principal: Principal, resource: Resource) => boolean;

const user =
  (test: (principal: UserPrincipal, resource: Resource) => boolean): Rule =>
  (principal, resource) =>
    principal.kind === "user" && test(principal, resource);

const anyone: Rule = () => true;
const systemOnly: Rule = () => false;
const signedIn = user(() => true);
const admin = user((p) => p.isAdmin);
const roleIn = (p: UserPrincipal, r: Resource) => (r.teamId === undefined ? undefined : p.teams[r.teamId]);
const isOwner = (p: UserPrincipal, r: Resource) => r.ownerId !== undefined && r.ownerId === p.userId;
const teamMember = user((p, r) => roleIn(p, r) !== undefined);
const teamMemberOrAdmin = user((p, r) => p.isAdmin || roleIn(p, r) !== undefined);
const teamLeadOrAdmin = user((p, r) => p.isAdmin || roleIn(p, r) === "lead");
const owner = user(isOwner);
const ownerLeadOrAdmin = user((p, r) => p.isAdmin || isOwner(p, r) || roleIn(p, r) === "lead");
/** Only in a browser session: a token can neither make tokens nor open windows. */
const bySession = user((p) => p.sessionId !== undefined);
/** Whoever left the team keeps the files, but runs nothing on the team's quota any more. */
const ownerInTeam = user((p, r) => isOwner(p, r) && roleIn(p, r) !== undefined);
const isCollaborator = (_: UserPrincipal, r: Resource) => r.role === "viewer" || r.role === "editor";
const isEditor = (_: UserPrincipal, r: Resource) => r.role === "editor";
const collaborator = user(isCollaborator);
const adminBySession = user((p) => p.isAdmin && p.sessionId !== undefined);
const ownWorkspace: Rule = (p, r) => p.kind === "workspace" && r.workspaceId === p.workspaceId;
const ownGpuServer: Rule = (p, r) => p.kind === "gpud" && r.serverId === p.serverId;

/** Every operation and its rule. `system` may do everything. */
const rules = {
  "setup.read": anyone,
  /** The one-time code is the authority; the service checks it. */
  "setup.complete": anyone,
  "setup.prepare": systemOnly,
  "sample-data.remove": admin,
  "setup-step.list": signedIn,
  "setup-step.write": systemOnly,

  /** Whoever proved an identity is not yet a principal: sign-in acts as the system. */
  "session.create": systemOnly,
  "session.read": signedIn,
  "session.list": signedIn,
  "session.end": owner,
  "user.list": admin,
  "user.deactivate": admin,
  "user.reactivate": admin,
  /** A token that got lost makes no admins. */
  "user.set-admin": adminBySession,
  /** Whoever has the link signs in as that person. */
  "user.create-password-link": adminBySession,
  /** The next sign-in with the verified e-mail takes over the account. */
  "user.unlink-oidc": adminBySession,
  /** One's own, by the current one: a token that got lost guesses no passwords. */
  "user.change-password": bySession,
  /** The link's code is the authority. */
  "user.redeem-password-link": anyone,
  "user.invite": teamLeadOrAdmin,
  /** The invitation's code is the authority. */
  "user.accept-invite": anyone,
  /** The code is the authority, for the principal's own e-mail only. */
  "user.join-by-invite": bySession,
  "user.open-sample": adminBySession,
  /** The admin's one-time code is the authority. */
  "user.enter-sample": anyone,

  "team.list": signedIn,
  "team.read": teamMemberOrAdmin,
  "team.read-budget": teamMemberOrAdmin,
  "team.create": admin,
  /** Also: to bring it back. */
  "team.archive": admin,
  "team.set-quota": admin,
  "team.set-policy": admin,
  "team.list-policies": admin,
  "team.set-egress-policy": admin,
  "gpu-type.set-windows": admin,
  /** What a GPU type takes when is everybody's to know; of quotas one sees the own teams'. */
  "calendar.list": signedIn,
  "stop.list": signedIn,
  "stop.set": admin,
  "reservation.list": signedIn,
  "reservation.create": admin,
  /** A team may give up what it was promised. */
  "reservation.remove": teamLeadOrAdmin,
  "quota-request.list": signedIn,
  "quota-request.ask": teamMember,
  "quota-request.decide": teamLeadOrAdmin,
  "team.add-member": teamLeadOrAdmin,
  "team.remove-member": teamLeadOrAdmin,

  /** What groups of the identity provider give; among it an admin's rights. */
  "identity-group.list": admin,
  "identity-group.add": adminBySession,
  "identity-group.remove": adminBySession,

  "access-token.list": signedIn,
  "access-token.create": bySession,
  "access-token.revoke": owner,

  "image.list": signedIn,
  "image.register": admin,
  /** An admin sees all, a lead what is offered and what was proposed for the own teams. */
  "image.list-versions": user((p) => p.isAdmin || Object.values(p.teams).includes("lead")),
  /** What is inside is for everybody to know who may launch it. */
  "image.read-version": signedIn,
  "image.set-state": admin,
  /** Also: to have it checked again, and to take it back. */
  "image.propose": teamLeadOrAdmin,

  /** Everybody's and the own teams'; an admin sees all. */
  "dataset.list": signedIn,
  "dataset.read": user((p, r) => p.isAdmin || r.teamId === undefined || roleIn(p, r) !== undefined),
  /** Without a team it is everybody's, which is an admin's to decide. */
  "dataset.register": teamLeadOrAdmin,
  "dataset.edit": teamLeadOrAdmin,
  "dataset.remove": teamLeadOrAdmin,
  "dataset.record-size": systemOnly,

  "workspace-size.list": signedIn,
  /** Offering sizes, and who may choose others. */
  "workspace-size.edit": admin,
  /** Where the policy leaves it to leads and admins. */
  "workspace-size.choose-freely": teamLeadOrAdmin,

  /** The owner works in a team of their own: an admin who is not in the team cannot launch there. */
  "workspace.create": teamMember,
  "workspace.list": signedIn,
  "workspace.read": (p, r) => ownerLeadOrAdmin(p, r) || collaborator(p, r),
  "workspace.start": user((p, r) => (isOwner(p, r) && roleIn(p, r) !== undefined) || isEditor(p, r)),
  "workspace.stop": user((p, r) => ownerLeadOrAdmin(p, r) || isEditor(p, r)),
  "workspace.remove": ownerLeadOrAdmin,
  "workspace.restore": ownerLeadOrAdmin,
  /** The files of a removed workspace, before their time. */
  "workspace.delete-files": ownerLeadOrAdmin,
  "workspace.limit-kept-files": systemOnly,
  "workspace.restart": user((p, r) => (isOwner(p, r) && roleIn(p, r) !== undefined) || isEditor(p, r)),
  "workspace.duplicate": ownerInTeam,
  /** Its files and notebooks, and a later stop. */
  "workspace.work": user((p, r) => isOwner(p, r) || isEditor(p, r)),
  /** Code in its notebooks, which reads all of its files: from the browser session alone, like opening it. */
  "workspace.run-code": user(
    (p, r) => p.sessionId !== undefined && ((isOwner(p, r) && roleIn(p, r) !== undefined) || isEditor(p, r)),
  ),
  /** Name, settings, variables and collaborators. */
  "workspace.change": owner,
  /** Who may take a collaborator out again; nobody but the owner invites one. */
  "workspace.unshare": ownerLeadOrAdmin,
  "workspace.leave": collaborator,
  /** Whoever has the link learns whom to ask. */
  "workspace.read-link": signedIn,
  "workspace.measure": systemOnly,
  /** What its launcher mounts, and how far it is in the cache. */
  "workspace.mount-datasets": systemOnly,
  "workspace.read-secrets": systemOnly,
  "workspace.stop-idle": systemOnly,
  "workspace.follow-place": systemOnly,
  "workspace.bring-back": systemOnly,
  "workspace.tell-restart": systemOnly,
  /**
   * Files and running notebooks are the owner's and of those whom the owner has invited, and only from the browser session
   * that asks. A viewer looks: what is more asks for `workspace.work`.
   */
  "workspace.open": user(
    (p, r) => p.sessionId !== undefined && ((isOwner(p, r) && roleIn(p, r) !== undefined) || isCollaborator(p, r)),
  ),
  "workspace.redeem-handover": systemOnly,

  "lease.list": signedIn,
  "lease.end": ownerLeadOrAdmin,
  /** Whoever holds it, from the notebook or from a page. */
  "lease.extend": (p, r) => ownWorkspace(p, r) || owner(p, r),
  /** The team sees why each of its requests waits. */
  "lease.explain": (p, r) => ownWorkspace(p, r) || ownerLeadOrAdmin(p, r) || teamMember(p, r),
  "lease.leave-queue": ownerLeadOrAdmin,
  "lease.request": ownWorkspace,
  "lease.poll": ownWorkspace,
  "lease.cancel": ownWorkspace,
  "lease.open-session": ownWorkspace,
  "lease.give-back": ownWorkspace,
  "lease.status": ownWorkspace,
  "lease.report-owners": ownWorkspace,

  "conformance.list": signedIn,
  /** Admins see all of it, a lead whose GPUs the led teams' people hold, and of others the team alone. */
  "pool.read": teamLeadOrAdmin,
  /** Admins see all of it, a lead the own team. */
  "utilisation.read": teamLeadOrAdmin,
  "cost.read": teamLeadOrAdmin,
  "cost.set-price": admin,
  "cost.close-month": admin,
  /** Other teams' demand is in the answer. */
  "what-if.ask": admin,
  "health.read": admin,
  "gpu-server.create-join-token": admin,
  /** The join token is the authority. */
  "gpu-server.join": anyone,
  "gpu-server.list": admin,
  "gpu-server.drain": admin,
  "gpu-server.set-zone": admin,
  "gpu-server.set-kind": admin,
  "gpu-server.remove": admin,
  "gpu-server.control": ownGpuServer,
  "gpu-server.follow-node": systemOnly,

  /** The token of its account, which the cluster reviews, is the authority. */
  "pod.join": anyone,
  /** The API server asks, and is told nothing that a pod's author could not read. */
  "pod.admit": anyone,
  "pod.end": systemOnly,
  "pod.list-open": systemOnly,
  "pod.news": systemOnly,

  /** Admins read all of it, a lead what happened in the own team. */
  "audit.list": teamLeadOrAdmin,

  /** One's own; nobody else's, whatever the role. */
  "notice.list": signedIn,
  "notice.mark-read": signedIn,
  "notice.write": systemOnly,

  "live.subscribe": signedIn,
  "api.describe": anyone,
} satisfies Record<string, Rule>;

export type Action = keyof typeof rules;

/** Whether the principal may do it, and the token it calls with may as well. */
export function isAllowed(principal: Principal, action: Action, resource: Resource = {}): boolean {
  if (principal.kind === "system") return true;
  const acts = withinScopes(principal, scopeOf(action));
  return acts !== undefined && rules[action](acts, resource);
}

/** Rules that look at the principal alone. */
const withoutResource: ReadonlySet<Rule> = new Set([anyone, systemOnly, signedIn, admin, bySession, adminBySession]);

/** Whether the rule of an action looks at the principal alone, whatever it is done to. */
export function isDecidedByPrincipal(action: Action): boolean {
  return withoutResource.has(rules[action]);
}

/**
 * Decides what can be decided before the input is read: that somebody is signed in, and all of a rule that looks at
 * the principal alone. The service asks `authorize` again, with the resource.
 */
export function authorizeBeforeInput(principal: Principal, action: Action): void {
  if (isDecidedByPrincipal(action)) authorize(principal, action);
  else if (principal.kind === "anonymous") throw new SluiceError("unauthenticated", "Sign in first.");
}

/** Throws `unauthenticated` when nobody is signed in, `forbidden` otherwise, unless the rule allows it. */
export function authorize(principal: Principal, action: Action, resource: Resource = {}): void {
  if (isAllowed(principal, action, resource)) return;
  if (principal.kind === "anonymous") throw new SluiceError("unauthenticated", "Sign in first.");
  const { tokenScopes, ...person } = principal.kind === "user" ? principal : { ...principal, tokenScopes: undefined };
  if (tokenScopes !== undefined && rules[action](person, resource)) {
    const needed = needs(scopeOf(action), tokenScopes);
    throw new SluiceError("forbidden", `This access token may not do this. Make one with the scope "${needed}".`);
  }
  throw new SluiceError("forbidden", refusal(person, action, resource));
}

/** Why somebody may not, and whom to ask: not an admin where the one who asks is one. */
function refusal(principal: Principal, action: Action, resource: Resource): string {
  if (principal.kind === "user") {
    if (principal.sessionId === undefined && rules[action]({ ...principal, sessionId: "of a browser" }, resource)) {
      return "This is done in the browser alone, never with an access token.";
    }
    if (principal.isAdmin) return "Admins may not do this either: it is for its owner, or for members of the team.";
  }
  return "You are not allowed to do this. Ask a team lead or an admin.";
}

/**
 * Who acts, as far as the token's scopes reach; `undefined` beyond them. With `workspaces` alone a lead's or an admin's
 * token changes what is the person's own, and nothing of others.
 */
function withinScopes(principal: Principal, scope: TokenScope): Principal | undefined {
  if (principal.kind !== "user" || principal.tokenScopes === undefined) return principal;
  const { tokenScopes } = principal;
  if (scope === "read" || (scope === "manage" && tokenScopes.includes("manage"))) return principal;
  if (scope === "manage" || !tokenScopes.includes("workspaces")) return undefined;
  if (tokenScopes.includes("manage")) return principal;
  const teams = Object.fromEntries(Object.keys(principal.teams).map((id) => [id, "member" as const]));
  return { ...principal, isAdmin: false, teams };
}

/** The scope whose lack is the reason: where `workspaces` is there, it is somebody else's workspace. */
function needs(scope: TokenScope, has: readonly TokenScope[]): TokenScope {
  return scope === "workspaces" && has.includes("workspaces") ? "manage" : scope;
}
