/** The gateway's own sessions: a cookie on the workspace's hostname, bound to user, workspace and browser session. */
import { and, eq, gt, inArray, isNull, lt, type SQL, sql } from "drizzle-orm";
import { authorize, isAllowed } from "#server/auth/authorize.ts";
import { loadUser } from "#server/auth/load-user.ts";
import { type Context, inTransaction } from "#server/context.ts";
import { readTheme, type Theme } from "#server/contracts/theme.ts";
import type { Database } from "#server/db/client.ts";
import { gatewaySessions, sessions, users, workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { hashSecret, newCode, newId } from "#server/ids.ts";
import { givenRole } from "#server/services/workspace/given-role.ts";
import { resourceOf } from "#server/services/workspace/load.ts";
import { redeemHandover } from "#server/services/workspace/redeem-handover.ts";

/** Lifetime of access without a request or an open connection, bounded by the sign-in session of the portal. */
const SESSION_MS = 12 * 3_600_000;
/** A session in use is renewed once in this time, which spares a write on every request. */
const RENEW_MS = 600_000;

/** Trades a one-time code for a session's secret. Throws `forbidden` when the code is not valid here. */
export async function enter(ctx: Context, input: { workspaceId: string; code: string }): Promise<string> {
  return await inTransaction(ctx, async (tx) => {
    const { userId, sessionId, workspaceId } = await redeemHandover(tx, input);
    const secret = newCode();
    const [portal] = await tx.db.select().from(sessions).where(eq(sessions.id, sessionId));
    if (portal === undefined) throw noSession();
    const expiresAt = endOf(tx.now(), portal);
    await tx.db.insert(gatewaySessions).values({
      id: newId("gws"),
      secretHash: hashSecret(secret),
      userId,
      workspaceId,
      sessionId,
      createdAt: tx.now(),
      expiresAt,
    });
    return secret;
  });
}

/** New end of a gateway session that is in use at `now`. */
function endOf(now: Date, portal: { expiresAt: Date }): Date {
  return new Date(Math.min(now.getTime() + SESSION_MS, portal.expiresAt.getTime()));
}

export type Admission = {
  gatewaySessionId: string;
  /** Whether it may do all that the server can, else only look (reading.ts). */
  mayWork: boolean;
  owner: { name: string };
  /** The look of the portal's pages in this browser. */
  theme: Theme;
  workspace: typeof workspaces.$inferSelect;
};

/** Who comes in: one of these secrets must be a session for this workspace. The one decision for HTTP and upgrades. */
export async function admit(db: Database, workspaceId: string, secrets: string[]): Promise<Admission> {
  if (secrets.length === 0) throw noSession();
  const hashes = inArray(gatewaySessions.secretHash, secrets.map(hashSecret));
  return await admitWhere(db, and(hashes, eq(gatewaySessions.workspaceId, workspaceId)));
}

/** The same decision again, for what is open already. */
export async function admitAgain(db: Database, gatewaySessionId: string): Promise<Admission> {
  return await admitWhere(db, eq(gatewaySessions.id, gatewaySessionId));
}

function noSession(): SluiceError {
  return new SluiceError("unauthenticated", "Open this workspace from the portal.");
}

/** The session must last, with its browser session, and the person must still be allowed to open the workspace. */
async function admitWhere(db: Database, which: SQL | undefined): Promise<Admission> {
  const now = new Date();
  const [row] = await db
    .select({
      gateway: gatewaySessions,
      portal: { expiresAt: sessions.expiresAt, theme: sessions.theme },
      workspace: workspaces,
      ownerName: users.name,
      role: givenRole(sql`gateway_sessions.user_id`),
    })
    .from(gatewaySessions)
    .innerJoin(sessions, eq(sessions.id, gatewaySessions.sessionId))
    .innerJoin(workspaces, eq(workspaces.id, gatewaySessions.workspaceId))
    .innerJoin(users, eq(users.id, workspaces.ownerId))
    .where(
      and(
        which,
        eq(sessions.userId, gatewaySessions.userId),
        isNull(gatewaySessions.revokedAt),
        isNull(sessions.revokedAt),
        gt(gatewaySessions.expiresAt, now),
        gt(sessions.expiresAt, now),
      ),
    );
  if (row === undefined) throw noSession();
  if (row.workspace.desired === "removed") throw new SluiceError("not-found", "This workspace was removed.");
  const { teamId, ownerId } = row.workspace;
  const user = await loadUser(db, row.gateway.userId);
  if (user === undefined) throw new SluiceError("unauthenticated", "This account cannot sign in any more.");
  if (ownerId !== user.userId && row.role === null) {
    throw new SluiceError("forbidden", `This workspace is not shared with you any more. Ask ${row.ownerName}.`);
  }
  if (ownerId === user.userId && user.teams[teamId] === undefined) {
    throw new SluiceError("forbidden", "You are no longer in the team that this workspace belongs to.");
  }
  const principal = { ...user, sessionId: row.gateway.sessionId };
  const resource = resourceOf(row.workspace, row.role);
  authorize(principal, "workspace.open", resource);
  const mayWork = isAllowed(principal, "workspace.work", resource);
  await renew(db, row, now);
  return {
    gatewaySessionId: row.gateway.id,
    mayWork,
    owner: { name: row.ownerName },
    theme: readTheme(row.portal.theme),
    workspace: row.workspace,
  };
}

type Renewable = { gateway: typeof gatewaySessions.$inferSelect; portal: { expiresAt: Date } };

/** An open tab asks its server all the time, and open connections are admitted again: both count as use. */
async function renew(db: Database, { gateway, portal }: Renewable, now: Date): Promise<void> {
  const expiresAt = endOf(now, portal);
  if (expiresAt.getTime() - gateway.expiresAt.getTime() < RENEW_MS) return;
  await db
    .update(gatewaySessions)
    .set({ expiresAt })
    .where(and(eq(gatewaySessions.id, gateway.id), lt(gatewaySessions.expiresAt, expiresAt)));
}

/** Whether a workspace of this id exists, for the page that somebody without a session sees. */
export async function workspaceExists(db: Database, workspaceId: string): Promise<boolean> {
  const [row] = await db.select({ desired: workspaces.desired }).from(workspaces).where(eq(workspaces.id, workspaceId));
  return row !== undefined && row.desired !== "removed";
}
