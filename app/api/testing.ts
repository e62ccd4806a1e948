/** Calls of every route of the tree, with the real handlers on a real PostgreSQL, each undone afterwards. */
import { existsSync, readFileSync } from "node:fs";
import type { ApiRoute } from "#scripts/generate/routes.ts";
import { createCode } from "#server/auth/one-time-code.ts";
import { hashPassword } from "#server/auth/password.ts";
import { tokenScopes } from "#server/contracts/access-token.ts";
import { type Database, setDatabase } from "#server/db/client.ts";
import { deviceIntervals, leaseRequests, leases, setupSteps, users } from "#server/db/schema/index.ts";
import type { TestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { create as createToken } from "#server/services/access-token/create.ts";
import { register } from "#server/services/dataset/register.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { add as addGroup } from "#server/services/identity-group/add.ts";
import { propose } from "#server/services/image/propose.ts";
import { create as reserve } from "#server/services/reservation/create.ts";
import { makePerson, makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { remove as removeWorkspace } from "#server/services/workspace/remove.ts";
import { add as addCollaborator } from "#server/services/workspace-collaborator/add.ts";
import { list as listSizes } from "#server/services/workspace-size/list.ts";

/** Who calls. */
export const roles = [
  "anonymous",
  /** Member of another team. */
  "stranger",
  /** Lead of another team. */
  "outsider",
  /** Member of another team, whom the owner has invited to look at the workspace. */
  "viewer",
  /** The same, to work in it. */
  "editor",
  /** Another member of the team. */
  "colleague",
  /** Member of the team, who owns the workspace and the lease. */
  "owner",
  "lead",
  "admin",
  /** The workspace's own credential, which is for the broker. */
  "workspace",
  /** The one-time token with which a GPU server joins; from then on it has a key, which is for the broker's channel. */
  "gpuServer",
  /** A personal access token of the owner. */
  "ownerToken",
  /** A personal access token of the admin. */
  "adminToken",
] as const;

/** Tokens with fewer scopes. Their answers follow from the other roles' (`authorisation.test.ts`). */
export const scopedTokens = [
  /** The owner's, with the scope `read`. */
  "ownerReadToken",
  /** The admin's, with the scope `workspaces`. */
  "adminOwnToken",
] as const;
export type Scoped = (typeof scopedTokens)[number];
export type Role = (typeof roles)[number];

type Expected = Record<Role, number>;
export type Row = {
  expected: Expected;
  /** Query of a GET, body of the others. */
  input?: (fixture: Fixture) => Record<string, unknown> | Promise<Record<string, unknown>>;
  /** Path parameters. */
  params?: (fixture: Fixture) => Record<string, string>;
};

/** 401 to whoever is not signed in here, the machines' credentials among them; the same status to everybody else. */
const signedIn = (status: number, others: Partial<Expected> = {}): Expected => ({
  anonymous: 401,
  // Who lead another team, or work in a workspace of this one, are strangers to the rest.
  stranger: others.outsider ?? status,
  outsider: status,
  viewer: others.stranger ?? others.outsider ?? status,
  editor: others.viewer ?? others.stranger ?? others.outsider ?? status,
  colleague: status,
  owner: status,
  lead: status,
  admin: status,
  workspace: 401,
  gpuServer: 401,
  ownerToken: status,
  adminToken: status,
  ...others,
});
const everybody = (status: number): Expected =>
  signedIn(status, { anonymous: status, workspace: status, gpuServer: status });
const adminOnly = (status: number, others: Partial<Expected> = {}): Expected =>
  signedIn(403, { admin: status, adminToken: status, ...others });
/** Of leads whatever team they lead, who see their part of it. */
const leadsAndAdmins = (status: number): Expected =>
  adminOnly(status, { stranger: 403, outsider: status, lead: status });
/** What belongs to a person of the team: to strangers it does not exist, and whom the owner has invited may look. */
const ownerLeadAdmin = (status: number, others: Partial<Expected> = {}): Expected =>
  signedIn(status, { stranger: 404, outsider: 404, colleague: 404, viewer: status, ...others });

/** What is the owner's alone, though leads, admins and whom the owner has invited see that it exists. */
const ownerAlone = (status: number, others: Partial<Expected> = {}): Expected =>
  signedIn(404, { owner: status, ownerToken: status, lead: 403, admin: 403, adminToken: 403, viewer: 403, ...others });

/** Work in a workspace, in which whoever was invited to it takes part. */
const ownerAndEditor = (status: number, others: Partial<Expected> = {}): Expected =>
  ownerAlone(status, { editor: status, ...others });

/** Of a team: its lead and admins change it, its members see it, to others it does not exist. */
const teamData = (status: number): Expected =>
  signedIn(403, { outsider: 404, lead: status, admin: status, adminToken: status });

const workspace = (fixture: Fixture) => ({ id: fixture.workspaceId });
const dataset = (fixture: Fixture) => ({ id: fixture.datasetId });
const kernel = (fixture: Fixture) => ({ id: fixture.workspaceId, kernelId: "0".repeat(36) });
const stoppedWorkspace = (fixture: Fixture) => ({ id: fixture.stoppedId });
const removedWorkspace = (fixture: Fixture) => ({ id: fixture.removedId });
const proposed = (fixture: Fixture) => ({ id: fixture.proposalId });
const team = (fixture: Fixture) => ({ id: fixture.world.team });
const colleague = (fixture: Fixture) => ({ id: fixture.world.colleague.id });
const server = (fixture: Fixture) => ({ id: fixture.world.serverId });
const device = (fixture: Fixture) => ({ id: fixture.world.gpuIds[1] });

const size = (fixture: Fixture) => ({ id: fixture.sizeId });
const someSize = { cpuMilli: 500, memoryBytes: 2 ** 29 };

const reserved = {
  ...{ gpuType: "soft", amount: "0.5", unit: "4G" },
  ...{ startsAt: "2099-01-05T10:00:00Z", endsAt: "2099-01-05T12:00:00Z" },
};
const volume = { kind: "volume", claim: "data" } as const;
const reservation = (fixture: Fixture) => ({ ...reserved, teamId: fixture.world.team });

/** The request that the fixture's lease was granted for. */
const REQUEST = newId("req");
/** One that waits. */
const WAITING = newId("req");

/** Every route with an input that is right, and what each role gets for it. */
export const matrix: Record<string, Row> = {
  "GET /me": { expected: signedIn(200) },
  "GET /me/glance": { expected: signedIn(200) },
  "PUT /me/password": {
    // A token guesses no passwords.
    expected: signedIn(200, { ownerToken: 403, adminToken: 403 }),
    input: () => ({ currentPassword: "correct horse", password: "better horse" }),
  },
  "DELETE /session": { expected: signedIn(200) },
  "GET /sessions": { expected: signedIn(200) },
  "DELETE /sessions/{id}": {
    expected: signedIn(403, { owner: 200, ownerToken: 200 }),
    params: (fixture) => ({ id: fixture.world.member.sessionId }),
  },
  "GET /setup": { expected: everybody(200) },
  "POST /setup": {
    // There is an admin already.
    expected: everybody(409),
    input: () => ({ code: "a".repeat(43), name: "Eve", email: "eve@example.org", password: "correct horse" }),
  },
  "GET /setup-steps": { expected: signedIn(200) },
  // This is no portal on sample data.
  "DELETE /sample-data": { expected: adminOnly(404) },

  "GET /workspaces": { expected: signedIn(200) },
  "POST /workspaces": {
    expected: signedIn(201, { outsider: 403, admin: 403, adminToken: 403 }),
    input: (fixture) => ({ name: "new", image: "cuda-python", teamId: fixture.world.team }),
  },
  "GET /workspaces/{id}": { expected: ownerLeadAdmin(200), params: workspace },
  "DELETE /workspaces/{id}": { expected: ownerLeadAdmin(200, { viewer: 403 }), params: workspace },
  "PUT /workspaces/{id}/name": {
    expected: ownerAlone(200),
    params: workspace,
    input: () => ({ name: "another name" }),
  },
  "GET /removed-workspaces": { expected: signedIn(200) },
  // Collaborators see a removed workspace no longer.
  "DELETE /removed-workspaces/{id}": { expected: ownerLeadAdmin(200, { viewer: 404 }), params: removedWorkspace },
  "POST /removed-workspaces/{id}/restore": {
    expected: ownerLeadAdmin(200, { viewer: 404 }),
    params: removedWorkspace,
    input: () => ({ name: "restored" }),
  },
  "POST /workspaces/{id}/stop": { expected: ownerLeadAdmin(200, { viewer: 403, editor: 200 }), params: workspace },
  "POST /workspaces/{id}/start": { expected: ownerAndEditor(200), params: stoppedWorkspace },
  // Only from a browser session, and what a viewer opens can only be looked at.
  "POST /workspaces/{id}/open": { expected: ownerAndEditor(200, { viewer: 200, ownerToken: 403 }), params: workspace },
  "POST /workspaces/{id}/restart": { expected: ownerAndEditor(200), params: workspace },
  "POST /workspaces/{id}/duplicate": { expected: ownerAlone(201), params: workspace, input: () => ({ name: "again" }) },
  // This one has not been up yet, so that nothing is there to extend.
  "POST /workspaces/{id}/extend": {
    expected: ownerAndEditor(409),
    params: workspace,
    input: () => ({ forSeconds: 3600 }),
  },
  "PUT /workspaces/{id}/idle-limit": {
    expected: ownerAlone(200),
    params: workspace,
    input: () => ({ idleSeconds: 3600 }),
  },
  "PUT /workspaces/{id}/size": { expected: ownerAlone(200), params: workspace, input: () => ({ size: "Small" }) },
  "PUT /workspaces/{id}/gpu-policy": {
    expected: ownerAlone(200),
    params: workspace,
    input: () => ({ gpuPolicy: "first-use", defaultAmount: "4G" }),
  },
  // No newer version is offered.
  "POST /workspaces/{id}/update": {
    expected: ownerAlone(409),
    params: workspace,
    input: (fixture) => ({ versionId: fixture.world.imageVersionId }),
  },
  "GET /workspaces/{id}/samples": { expected: ownerLeadAdmin(200), params: workspace },
  "GET /workspaces/{id}/refused-connections": { expected: ownerLeadAdmin(200), params: workspace },
  "GET /workspaces/{id}/kernels": { expected: ownerLeadAdmin(200), params: workspace },
  // Only from a browser session; this workspace has no Jupyter server.
  "POST /workspaces/{id}/kernels": {
    expected: ownerAndEditor(409, { ownerToken: 403 }),
    params: workspace,
    input: () => ({ path: "tour/first.ipynb" }),
  },
  "POST /workspaces/{id}/kernels/{kernelId}/run": {
    expected: ownerAndEditor(409, { ownerToken: 403 }),
    params: kernel,
    input: () => ({ code: "1 + 1" }),
  },
  "POST /workspaces/{id}/kernels/{kernelId}/interrupt": { expected: ownerAndEditor(409), params: kernel },
  "DELETE /workspaces/{id}/kernels/{kernelId}": { expected: ownerAndEditor(409), params: kernel },
  "GET /workspaces/{id}/variables": { expected: ownerAlone(200), params: workspace },
  "PUT /workspaces/{id}/variables/{name}": {
    expected: ownerAlone(200),
    params: (fixture) => ({ id: fixture.workspaceId, name: "API_KEY" }),
    input: () => ({ value: "very secret", secret: true }),
  },
  // The owner learns that there is none.
  "DELETE /workspaces/{id}/variables/{name}": {
    expected: ownerAlone(404),
    params: (fixture) => ({ id: fixture.workspaceId, name: "NO_SUCH" }),
  },
  "GET /workspaces/{id}/collaborators": { expected: ownerLeadAdmin(200), params: workspace },
  "POST /workspaces/{id}/collaborators": {
    expected: ownerAlone(200),
    params: workspace,
    input: (fixture) => ({ person: fixture.world.colleague.email, role: "viewer" }),
  },
  "DELETE /workspaces/{id}/collaborators/{userId}": {
    // They learn that there is none. Whom the owner has invited may leave, and take out nobody else.
    expected: ownerLeadAdmin(404, { viewer: 403 }),
    params: (fixture) => ({ id: fixture.workspaceId, userId: fixture.world.colleague.id }),
  },
  // It tells everybody who holds it whom to ask, and nothing else.
  "GET /workspaces/{id}/link": { expected: signedIn(200), params: workspace },
  "GET /workspaces/{id}/events": { expected: ownerLeadAdmin(200), params: workspace },
  "GET /workspaces/{id}/datasets": { expected: ownerLeadAdmin(200), params: workspace },
  "PUT /workspaces/{id}/datasets": {
    expected: ownerAlone(200),
    params: workspace,
    input: () => ({ datasets: [] }),
  },
  "GET /workspace-sizes": { expected: signedIn(200) },
  "POST /workspace-sizes": { expected: adminOnly(201), input: () => ({ name: "Huge", ...someSize }) },
  "PUT /workspace-sizes/{id}": {
    expected: adminOnly(200),
    params: size,
    input: () => ({ name: "Smaller", ...someSize, version: 1 }),
  },
  "DELETE /workspace-sizes/{id}": { expected: adminOnly(200), params: size },
  "PUT /workspace-sizes/policy": {
    expected: adminOnly(200),
    input: () => ({ customSizes: "nobody", maxCpuMilli: 4000, maxMemoryBytes: 2 ** 33 }),
  },
  "GET /images": { expected: signedIn(200) },
  "GET /images/bases": { expected: signedIn(200) },
  // Leads see what is offered and what was proposed for their teams.
  "GET /image-versions": { expected: leadsAndAdmins(200) },
  "POST /image-versions": {
    expected: signedIn(403, { lead: 201, admin: 201, adminToken: 201 }),
    input: (fixture) => ({
      ...{ name: "words", title: "Words", description: "", teamId: fixture.world.team },
      source: { kind: "packages", base: "cuda-python", requirements: "humanize" },
    }),
  },
  // To other teams a proposal does not exist.
  "DELETE /image-versions/{id}": { expected: teamData(200), params: proposed },
  // It waits for its check already, or has not passed it.
  "POST /image-versions/{id}/check": { expected: teamData(409), params: proposed },
  "POST /image-versions/{id}/approve": {
    expected: adminOnly(409),
    params: proposed,
    input: () => ({ teamIds: null }),
  },
  "GET /image-versions/{id}/events": { expected: signedIn(200, { outsider: 404 }), params: proposed },
  "GET /image-versions/{id}": {
    expected: signedIn(200),
    params: (fixture) => ({ id: fixture.world.imageVersionId }),
  },
  "PUT /image-versions/{id}/state": {
    expected: adminOnly(200),
    params: (fixture) => ({ id: fixture.world.imageVersionId }),
    input: () => ({ state: "retired" }),
  },

  "GET /datasets": { expected: signedIn(200) },
  "POST /datasets": {
    expected: signedIn(403, { lead: 201, admin: 201, adminToken: 201 }),
    input: (fixture) => ({ name: "new", teamId: fixture.world.team, source: { kind: "volume", claim: "new" } }),
  },
  "PUT /datasets/{id}": {
    expected: teamData(200),
    params: dataset,
    input: () => ({ description: "Changed", prefetch: false, sizeBytes: 5 }),
  },
  "DELETE /datasets/{id}": { expected: teamData(200), params: dataset },
  // It is a volume, which nobody can measure.
  "POST /datasets/{id}/measure": { expected: teamData(422), params: dataset },

  "GET /teams": { expected: signedIn(200) },
  "POST /teams": { expected: adminOnly(201), input: () => ({ name: "audio" }) },
  "GET /teams/{id}": { expected: signedIn(200, { outsider: 403 }), params: team },
  // It has workspaces.
  "POST /teams/{id}/archive": { expected: adminOnly(409), params: team },
  "POST /teams/{id}/restore": { expected: adminOnly(200), params: team },
  "GET /teams/{id}/leases": { expected: signedIn(200, { outsider: 403 }), params: team },
  "GET /teams/{id}/budget": { expected: signedIn(200, { outsider: 403 }), params: team },
  "POST /teams/{id}/quotas/{type}/preview": {
    expected: adminOnly(200),
    params: (fixture) => ({ id: fixture.world.team, type: "soft" }),
    input: () => ({ guaranteedMilli: 500, limitMilli: 2000 }),
  },
  "PUT /teams/{id}/quotas/{type}": {
    expected: adminOnly(200),
    params: (fixture) => ({ id: fixture.world.team, type: "soft" }),
    input: () => ({ guaranteedMilli: 500, limitMilli: 2000 }),
  },
  // The team holds a GPU of this type.
  "DELETE /teams/{id}/quotas/{type}": {
    expected: adminOnly(409),
    params: (fixture) => ({ id: fixture.world.team, type: "soft" }),
  },
  "PUT /teams/{id}/quotas/{type}/windows": {
    expected: adminOnly(200),
    params: (fixture) => ({ id: fixture.world.team, type: "soft" }),
    input: () => ({ windows: [{ fromMinute: 0, toMinute: 60, guaranteedMilli: 500, limitMilli: 2000 }] }),
  },
  "GET /teams/{id}/quotas/{type}/windows": {
    expected: signedIn(200, { outsider: 403 }),
    params: (fixture) => ({ id: fixture.world.team, type: "soft" }),
  },
  "DELETE /teams/{id}/quotas/{type}/windows": {
    expected: adminOnly(200),
    params: (fixture) => ({ id: fixture.world.team, type: "soft" }),
    input: () => ({ version: 0 }),
  },
  "POST /teams/{id}/quotas/{type}/windows/preview": {
    expected: adminOnly(200),
    params: (fixture) => ({ id: fixture.world.team, type: "soft" }),
    input: () => ({ windows: [{ fromMinute: 0, toMinute: 60, guaranteedMilli: 500, limitMilli: 2000 }] }),
  },
  "GET /calendars": { expected: signedIn(200) },
  "GET /gpu-types/{type}/windows": { expected: signedIn(200), params: () => ({ type: "soft" }) },
  "DELETE /gpu-types/{type}/windows": { expected: adminOnly(200), params: () => ({ type: "soft" }) },
  "PUT /gpu-types/{type}/windows": {
    expected: adminOnly(200),
    params: () => ({ type: "soft" }),
    input: () => ({ windows: [] }),
  },
  "GET /teams/{id}/policy": { expected: signedIn(200, { outsider: 403 }), params: team },
  "PUT /teams/{id}/policy": {
    expected: adminOnly(200),
    params: team,
    input: () => ({ maxLeaseSeconds: 3600, idleSeconds: null, coTenancy: "own-team" }),
  },
  "GET /teams/{id}/egress-policy": { expected: signedIn(200, { outsider: 403 }), params: team },
  "PUT /teams/{id}/egress-policy": {
    expected: adminOnly(200),
    params: team,
    input: () => ({ mode: "list", allow: ["*.pypi.org", "10.1.0.0/16"] }),
  },
  "GET /team-policies": { expected: adminOnly(200) },
  // Everybody's own: the machines are told nothing here.
  "GET /notices": { expected: signedIn(200) },
  "POST /notices/read": { expected: signedIn(200), input: () => ({ ids: [`ntc-${"a".repeat(26)}`] }) },
  "GET /stops": { expected: signedIn(200) },
  "POST /stops": {
    expected: adminOnly(201),
    input: (fixture) => ({ scope: "user", subjectId: fixture.world.member.id, reason: "a test", endLeases: true }),
  },
  // An admin learns that there is none; nobody else may ask.
  "DELETE /stops/{id}": { expected: adminOnly(404), params: () => ({ id: `stp-${"a".repeat(26)}` }) },
  "GET /reservations": { expected: signedIn(200) },
  "POST /reservations": { expected: adminOnly(201), input: reservation },
  "POST /reservations/preview": { expected: adminOnly(200), input: reservation },
  "DELETE /reservations/{id}": {
    expected: signedIn(403, { lead: 200, admin: 200, adminToken: 200 }),
    params: (fixture) => ({ id: fixture.reservationId }),
  },
  "GET /quota-requests": { expected: signedIn(200) },
  "POST /quota-requests": {
    expected: signedIn(201, { outsider: 403, admin: 403, adminToken: 403 }),
    input: (fixture) => ({
      ...{ teamId: fixture.world.team, gpuType: "soft", limitMilli: 500, endsAt: "2099-01-05T12:00:00Z" },
      reason: "a paper",
    }),
  },
  "POST /quota-requests/{id}/decide": {
    expected: signedIn(403, { admin: 404, adminToken: 404 }),
    params: () => ({ id: `qrq-${"a".repeat(26)}` }),
    input: () => ({ approve: true }),
  },
  "POST /quota-requests/{id}/end": {
    expected: signedIn(403, { admin: 404, adminToken: 404 }),
    params: () => ({ id: `qrq-${"a".repeat(26)}` }),
  },
  "POST /teams/{id}/members": {
    expected: signedIn(403, { lead: 200, admin: 200, adminToken: 200 }),
    params: team,
    input: (fixture) => ({ email: fixture.world.outsider.email }),
  },
  "DELETE /teams/{id}/members/{userId}": {
    expected: signedIn(403, { lead: 200, admin: 200, adminToken: 200 }),
    params: (fixture) => ({ id: fixture.world.team, userId: fixture.world.colleague.id }),
  },
  "GET /teams/{id}/invitations": {
    expected: signedIn(403, { lead: 200, admin: 200, adminToken: 200 }),
    params: team,
  },
  "DELETE /teams/{id}/invitations/{invitationId}": {
    expected: signedIn(403, { lead: 200, admin: 200, adminToken: 200 }),
    params: (fixture) => ({ id: fixture.world.team, invitationId: fixture.inviteId }),
  },
  "POST /invitations": {
    expected: signedIn(403, { lead: 201, admin: 201, adminToken: 201 }),
    input: (fixture) => ({ email: "new@example.org", teamId: fixture.world.team }),
  },
  "GET /invitations/{code}": { expected: everybody(200), params: (fixture) => ({ code: fixture.inviteCode }) },
  "POST /invitations/accept": {
    expected: everybody(201),
    input: async (fixture) => ({ code: fixture.inviteCode, name: "New", password: "correct horse" }),
  },
  "POST /invitations/join": {
    // It is for the owner's e-mail; a token joins nothing.
    expected: signedIn(409, { owner: 200, ownerToken: 403, adminToken: 403 }),
    input: (fixture) => ({ code: fixture.joinCode }),
  },

  "GET /users": { expected: adminOnly(200) },
  "POST /users/{id}/deactivate": { expected: adminOnly(200), params: colleague },
  "POST /users/{id}/reactivate": { expected: adminOnly(200), params: colleague },
  "PUT /users/{id}/admin": {
    // A token makes no admin.
    expected: signedIn(403, { admin: 200 }),
    params: colleague,
    input: () => ({ isAdmin: true }),
  },
  "DELETE /users/{id}/oidc-link": {
    // The next sign-in takes over the account, so no token removes a link.
    expected: signedIn(403, { admin: 200 }),
    params: colleague,
  },
  "POST /users/{id}/password-link": {
    // Whoever has the link is that person: no token makes one.
    expected: signedIn(403, { admin: 201 }),
    params: colleague,
  },
  "GET /password-links/{code}": { expected: everybody(200), params: (fixture) => ({ code: fixture.passwordCode }) },
  "POST /password-links/redeem": {
    expected: everybody(200),
    input: (fixture) => ({ code: fixture.passwordCode, password: "better horse" }),
  },
  "POST /users/sample/open": {
    expected: signedIn(403, { admin: 200 }),
    input: (fixture) => ({ teamId: fixture.world.team }),
  },
  "GET /users/sample/enter": { expected: everybody(303), input: (fixture) => ({ code: fixture.sampleCode }) },

  "GET /identity-groups": { expected: adminOnly(200) },
  "POST /identity-groups": {
    // Not with a token: it may make admins.
    expected: adminOnly(201, { adminToken: 403 }),
    input: (fixture) => ({ name: "data-science", teamId: fixture.world.team, role: "member" }),
  },
  "DELETE /identity-groups/{id}": {
    expected: adminOnly(200, { adminToken: 403 }),
    params: (fixture) => ({ id: fixture.identityGroupId }),
  },
  "GET /access-tokens": { expected: signedIn(200) },
  "POST /access-tokens": {
    // A token makes no token.
    expected: signedIn(201, { ownerToken: 403, adminToken: 403 }),
    input: () => ({ name: "ci" }),
  },
  "DELETE /access-tokens/{id}": {
    expected: signedIn(404, { owner: 200, ownerToken: 200 }),
    params: (fixture) => ({ id: fixture.ownerTokenId }),
  },

  "GET /gpus": { expected: signedIn(200) },
  "GET /leases": { expected: signedIn(200) },
  "POST /leases/{id}/extend": {
    // Only whoever holds it.
    expected: signedIn(403, { owner: 200, ownerToken: 200 }),
    params: (fixture) => ({ id: fixture.leaseId }),
    input: () => ({ forSeconds: 60 }),
  },
  "GET /lease-requests/{id}/explanation": {
    expected: signedIn(200, { outsider: 403 }),
    params: () => ({ id: REQUEST }),
  },
  "DELETE /lease-requests/{id}": {
    expected: signedIn(200, { outsider: 403, colleague: 403 }),
    params: () => ({ id: WAITING }),
  },
  "POST /leases/{id}/end": {
    expected: signedIn(200, { outsider: 403, colleague: 403 }),
    params: (fixture) => ({ id: fixture.leaseId }),
  },
  "GET /pool": { expected: leadsAndAdmins(200) },
  "GET /pool/map": { expected: leadsAndAdmins(200) },
  "GET /pool/queue": { expected: leadsAndAdmins(200) },
  // Only a joining server has a join token. There is nothing to install before gpud is built.
  "GET /gpu-servers/install": {
    expected: { ...everybody(403), gpuServer: existsSync("native/target/release/gpud") ? 200 : 404 },
    input: () => ({ file: "script" }),
  },
  "GET /gpu-servers": { expected: adminOnly(200) },
  "GET /gpu-servers/{id}/devices": { expected: leadsAndAdmins(200), params: server },
  "POST /gpu-servers/join-tokens": { expected: adminOnly(201) },
  "DELETE /gpu-servers/{id}": { expected: adminOnly(200), params: server },
  "PUT /gpu-servers/{id}/zone": { expected: adminOnly(200), params: server, input: () => ({ zone: "hall-2" }) },
  "POST /gpu-servers/{id}/drain": { expected: adminOnly(200), params: server, input: () => ({ draining: true }) },
  "GET /gpu-servers/{id}/drain-effects": { expected: adminOnly(200), params: server },
  "GET /gpus/{id}/drain-effects": { expected: adminOnly(200), params: device },
  "PUT /gpus/{id}/kind": { expected: adminOnly(200), params: device, input: () => ({ kind: "mig", was: "shared" }) },
  "POST /gpus/{id}/drain": { expected: adminOnly(200), params: device, input: () => ({ draining: false }) },

  "GET /utilisation": {
    expected: signedIn(403, { lead: 200, admin: 200, adminToken: 200 }),
    input: (fixture) => ({ teamId: fixture.world.team }),
  },
  "GET /what-ifs": { expected: adminOnly(200) },
  "POST /what-ifs": {
    // Nobody asked for a GPU in that time, which an admin learns.
    expected: adminOnly(400),
    input: () => ({ from: "2020-01-01T00:00:00Z", to: "2020-01-02T00:00:00Z", types: [{ gpuType: "soft" }] }),
  },
  "GET /what-ifs/{id}": { expected: adminOnly(404), params: () => ({ id: `wif-${"a".repeat(26)}` }) },
  "GET /health": { expected: adminOnly(200) },
  "GET /conformance": { expected: signedIn(200) },
  "GET /costs": {
    expected: signedIn(403, { lead: 200, admin: 200, adminToken: 200 }),
    input: (fixture) => ({ teamId: fixture.world.team }),
  },
  "GET /costs/rows": {
    expected: signedIn(403, { lead: 200, admin: 200, adminToken: 200 }),
    input: (fixture) => ({ teamId: fixture.world.team }),
  },
  "GET /costs/waste": {
    expected: signedIn(403, { lead: 200, admin: 200, adminToken: 200 }),
    input: (fixture) => ({ teamId: fixture.world.team }),
  },
  "GET /costs/prices": { expected: adminOnly(200) },
  "PUT /costs/prices/{type}": {
    expected: adminOnly(200),
    params: () => ({ type: "soft" }),
    input: () => ({ basis: "hour", amount: 2.5 }),
  },
  // It has none.
  "DELETE /costs/prices/{type}": { expected: adminOnly(404), params: () => ({ type: "soft" }) },
  "POST /costs/months/{month}/close": {
    expected: adminOnly(200),
    // The first GPU had left the pool by then.
    params: () => ({ month: "2020-02" }),
  },
  "GET /audit": { expected: adminOnly(200) },
  "GET /live": { expected: signedIn(200), input: () => ({ topics: "workspace,lease" }) },
  "GET /openapi.json": { expected: everybody(200) },
};

export type Fixture = {
  world: World;
  /** Members of the other team. */
  strangers: Record<"stranger" | "viewer" | "editor", Person>;
  workspaceId: string;
  stoppedId: string;
  /** A removed workspace whose files are kept. */
  removedId: string;
  credential: string;
  leaseId: string;
  reservationId: string;
  /** Of the team: a volume. */
  datasetId: string;
  /** One that comes with the installation, and is not the default. */
  sizeId: string;
  proposalId: string;
  inviteCode: string;
  inviteId: string;
  /** Code of the owner's invitation into the other team. */
  joinCode: string;
  sampleCode: string;
  passwordCode: string;
  ownerTokenId: string;
  identityGroupId: string;
  bearer: Record<"ownerToken" | "adminToken" | "workspace" | "gpuServer" | Scoped, string>;
};

const { paths } = JSON.parse(readFileSync("openapi.json", "utf8")) as {
  paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
};

/** The statuses that the API's document names for a route. */
export function documented({ definition: { method, path } }: ApiRoute): number[] {
  return Object.keys(paths[path]?.[method.toLowerCase()]?.responses ?? {}).map(Number);
}

export const keyOf = ({ definition }: ApiRoute) => `${definition.method} ${definition.path}`;

export type Sent = { params: Record<string, string>; input: Record<string, unknown>; headers?: Record<string, string> };

/** What one call answers. The handlers' own transactions are savepoints in one that is undone. */
export async function call(
  { test, fixture }: { test: TestDatabase; fixture: Fixture },
  route: ApiRoute,
  role: Role | Scoped,
  sent: Sent,
): Promise<{ status: number; type: string; text: string }> {
  const rollback = new Error("undo");
  const answer = { status: 0, type: "", text: "" };
  await test.db
    .transaction(async (tx) => {
      setDatabase({ db: tx as unknown as Database, sql: test.sql, close: async () => undefined });
      const abort = new AbortController();
      const response = await route.handler(requestFor(fixture, route, role, sent, abort.signal), {
        params: Promise.resolve(sent.params),
      });
      answer.status = response.status;
      answer.type = response.headers.get("content-type") ?? "";
      if (!answer.type.startsWith("text/event-stream")) answer.text = await response.text();
      abort.abort();
      await response.body?.cancel().catch(() => undefined);
      throw rollback;
    })
    .catch((error: unknown) => {
      if (error !== rollback) throw error;
    });
  return answer;
}

/** As it stands in an address. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? "-"));

function requestFor(fixture: Fixture, route: ApiRoute, role: Role | Scoped, sent: Sent, signal: AbortSignal): Request {
  const { method, path } = route.definition;
  const { params, input } = sent;
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
  const url = new URL(`http://localhost:3000/api/v1${filled}`);
  const headers = new Headers({ host: "localhost:3000", ...credentials(fixture, role, method), ...sent.headers });
  if (method === "GET") for (const [name, value] of Object.entries(input)) url.searchParams.set(name, textOf(value));
  const body = method === "GET" || Object.keys(input).length === 0 ? undefined : JSON.stringify(input);
  if (body !== undefined) headers.set("content-type", "application/json");
  return new Request(url, { method, headers, body, signal });
}

function credentials(fixture: Fixture, role: Role | Scoped, method: string): Record<string, string> {
  if (isBearer(fixture, role)) return { authorization: `Bearer ${fixture.bearer[role]}` };
  const fromOwnPage: Record<string, string> =
    method === "GET" ? {} : { origin: "http://localhost:3000", "sec-fetch-site": "same-origin" };
  if (role === "anonymous") return fromOwnPage;
  const { world } = fixture;
  const people: Record<typeof role, Person> = {
    stranger: fixture.strangers.stranger,
    outsider: world.outsider,
    viewer: fixture.strangers.viewer,
    editor: fixture.strangers.editor,
    colleague: world.colleague,
    owner: world.member,
    lead: world.lead,
    admin: world.admin,
  };
  return { cookie: people[role].cookie, ...fromOwnPage };
}

function isBearer(fixture: Fixture, role: string): role is keyof Fixture["bearer"] {
  return role in fixture.bearer;
}

/** What the rows name. */
export async function makeFixture(db: Database): Promise<Fixture> {
  const world = await makeWorld(db);
  await db.insert(setupSteps).values({ id: "portal", title: "Portal", state: "done" });
  const [startedAt, endedAt] = [new Date("2020-01-01T00:00:00Z"), new Date("2020-01-02T00:00:00Z")];
  await db.insert(deviceIntervals).values({ gpuId: world.gpuIds[0], state: "open", startedAt, endedAt });
  const { id: workspaceId, credential } = await makeWorkspace(world, { owner: world.member });
  const stranger = async (name: string) => await makePerson(db, { name, teams: { [world.otherTeam]: "member" } });
  const strangers = { stranger: await stranger("Sol"), viewer: await stranger("Vi"), editor: await stranger("Ed") };
  await db.update(users).set({ passwordHash: await hashPassword("correct horse") });
  const { id: stoppedId } = await makeWorkspace(world, { owner: world.member, running: false });
  const { id: removedId } = await makeWorkspace(world, { owner: world.member, running: false });
  const ownerToken = await createToken(world.member.ctx, { name: "owner", scopes: [...tokenScopes] });
  const adminToken = await createToken(world.admin.ctx, { name: "admin", scopes: [...tokenScopes] });
  const ownerReadToken = await createToken(world.member.ctx, { name: "reads", scopes: ["read"] });
  const adminOwnToken = await createToken(world.admin.ctx, { name: "own", scopes: ["workspaces"] });
  const join = await createJoinToken(world.admin.ctx);
  const invite = await createCode(world.system, "invite", 600, {
    email: "invited@example.org",
    teamId: world.team,
    role: "member",
  });
  const joining = { email: world.member.email, teamId: world.otherTeam, role: "member" } as const;
  const secondInvite = await createCode(world.system, "invite", 600, joining);
  const sample = await createCode(world.system, "sample", 600, {
    userId: world.colleague.id,
    sessionId: world.admin.sessionId,
  });
  const password = await createCode(world.system, "password", 600, { userId: world.colleague.id });
  for (const role of ["viewer", "editor"] as const) {
    for (const id of [workspaceId, stoppedId, removedId]) {
      await addCollaborator(world.member.ctx, { id, person: strangers[role].email, role });
    }
  }
  await removeWorkspace(world.member.ctx, { id: removedId });
  return {
    ...{ world, strangers },
    workspaceId,
    stoppedId,
    removedId,
    credential,
    leaseId: await makeLease(world, workspaceId),
    reservationId: (await reserve(world.admin.ctx, { ...reserved, teamId: world.team })).id,
    proposalId: (
      await propose(world.lead.ctx, {
        ...{ name: "more", title: "More", description: "", teamId: world.team },
        source: { kind: "packages", base: "cuda-python", requirements: "" },
      })
    ).id,
    datasetId: (await register(world.lead.ctx, { name: "data", teamId: world.team, source: volume })).id,
    sizeId: (await listSizes(world.admin.ctx)).sizes.find(({ isDefault }) => !isDefault)?.id ?? "",
    inviteCode: invite.code,
    inviteId: invite.id,
    joinCode: secondInvite.code,
    sampleCode: sample.code,
    passwordCode: password.code,
    ownerTokenId: ownerToken.token.id,
    identityGroupId: (await addGroup(world.admin.ctx, { name: "admins", role: "admin" })).groups[0]?.id ?? "",
    bearer: {
      ...{ ownerToken: ownerToken.secret, adminToken: adminToken.secret, workspace: credential, gpuServer: join.token },
      ...{ ownerReadToken: ownerReadToken.secret, adminOwnToken: adminOwnToken.secret },
    },
  };
}

async function makeLease(world: World, workspaceId: string): Promise<string> {
  const shared = {
    workspaceId,
    teamId: world.team,
    userId: world.member.id,
    gpuType: "soft",
    milli: 500,
    memoryBytes: 4 * 2 ** 30,
    owner: { kind: "process" as const, pid: 1, startTime: 1 },
  };
  const now = new Date();
  await world.db.insert(leaseRequests).values({
    ...shared,
    id: REQUEST,
    idempotencyKey: "6f1f4a64-7f0e-4a7e-9f44-0c8f6f4f1f00",
    state: "granted",
    lastPolledAt: now,
    waitUntil: now,
  });
  await world.db.insert(leaseRequests).values({
    ...shared,
    id: WAITING,
    milli: 1000,
    idempotencyKey: "6f1f4a64-7f0e-4a7e-9f44-0c8f6f4f1f01",
    state: "queued",
    lastPolledAt: now,
    waitUntil: new Date(now.getTime() + 600_000),
  });
  const id = newId("lea");
  await world.db.insert(leases).values({
    ...shared,
    id,
    requestId: REQUEST,
    gpuId: world.gpuIds[0],
    serverId: world.serverId,
    state: "active",
    epoch: 1,
    grantedAt: now,
    ownerSeenAt: now,
    expiresAt: new Date(now.getTime() + 3_600_000),
  });
  return id;
}
