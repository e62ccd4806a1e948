/** Who acts. Every request, job and message is done by exactly one principal. */

import type { TokenScope } from "#server/contracts/access-token.ts";

export type TeamRole = "lead" | "member";

export type UserPrincipal = {
  kind: "user";
  userId: string;
  email: string;
  name: string;
  isAdmin: boolean;
  /** Team id → role. */
  teams: Record<string, TeamRole>;
  /** The browser session, when signed in by one. */
  sessionId?: string;
  /** The personal access token, when called with one, and what it may do. */
  tokenId?: string;
  tokenScopes?: readonly TokenScope[];
};

/** A workspace by its credential; userId is its owner. */
export type WorkspacePrincipal = { kind: "workspace"; workspaceId: string; teamId: string; userId: string };

export type GpudPrincipal = { kind: "gpud"; serverId: string };

/** Sluice itself: the scheduler, reconcilers, start-up. */
export type SystemPrincipal = { kind: "system" };

export type AnonymousPrincipal = { kind: "anonymous" };

export type Principal = UserPrincipal | WorkspacePrincipal | GpudPrincipal | SystemPrincipal | AnonymousPrincipal;

export const system: SystemPrincipal = { kind: "system" };
export const anonymous: AnonymousPrincipal = { kind: "anonymous" };
