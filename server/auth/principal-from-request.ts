/** Who makes a request of the portal: by its cookie, or by a personal access token. */
import { and, eq, gt, isNull, or, sql } from "drizzle-orm";
import { loadUser } from "#server/auth/load-user.ts";
import { anonymous, type Principal } from "#server/auth/principal.ts";
import { readCookie, sessionIdFromCookies } from "#server/auth/session-cookie.ts";
import { readTheme, type Theme, themeCookie } from "#server/contracts/theme.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { accessTokens, sessions } from "#server/db/schema/index.ts";
import { hashSecret } from "#server/ids.ts";
import { readSession } from "#server/services/session/read.ts";

const MINUTE_MS = 60_000;

type Options = {
  now?: () => Date;
  /** For a request that was let in before: what its headers tell of the browser is old. */
  isSeenBefore?: boolean;
};

/**
 * The principal of these headers, `anonymous` when nothing in them is valid. A bearer token decides alone: a request
 * with a wrong one is not carried by a cookie. Credentials of workspaces and of gpud are for the broker; here they
 * are nobody's.
 */
export async function principalFromHeaders(
  db: Database | Transaction,
  headers: Pick<Headers, "get">,
  options: Options = {},
): Promise<Principal> {
  const now = options.now ?? (() => new Date());
  const authorization = headers.get("authorization");
  if (authorization !== null) return await fromAccessToken(db, authorization, now());
  const cookies = headers.get("cookie");
  const sessionId = await sessionIdFromCookies(cookies);
  if (sessionId === undefined) return anonymous;
  const theme = options.isSeenBefore === true ? undefined : readCookie(cookies, themeCookie);
  return await fromSession(db, sessionId, now, theme === undefined ? undefined : readTheme(theme));
}

/** The person of a session that lasts; `theme` is the look of its browser's pages. */
export async function fromSession(
  db: Database | Transaction,
  sessionId: string,
  now: () => Date,
  theme?: Theme,
): Promise<Principal> {
  const session = await readSession({ db, now }, sessionId);
  const user = session === undefined ? undefined : await loadUser(db, session.userId);
  if (session === undefined || user === undefined) return anonymous;
  // Once a minute is exact enough for "last used", and spares a write on every request.
  const isSeen = now().getTime() - (session.lastSeenAt?.getTime() ?? 0) <= MINUTE_MS;
  if (!isSeen || (theme ?? session.theme) !== session.theme) {
    await db.update(sessions).set({ lastSeenAt: now(), theme }).where(eq(sessions.id, sessionId));
  }
  return { ...user, sessionId };
}

async function fromAccessToken(db: Database | Transaction, authorization: string, now: Date): Promise<Principal> {
  const secret = /^Bearer (slp_[A-Za-z0-9_-]{43})$/i.exec(authorization)?.[1];
  if (secret === undefined) return anonymous;
  const [token] = await db
    .select()
    .from(accessTokens)
    .where(
      and(
        eq(accessTokens.secretHash, hashSecret(secret)),
        isNull(accessTokens.revokedAt),
        or(isNull(accessTokens.expiresAt), gt(accessTokens.expiresAt, now)),
      ),
    );
  if (token === undefined) return anonymous;
  const user = await loadUser(db, token.userId);
  if (user === undefined) return anonymous;
  // As for sessions.
  await db
    .update(accessTokens)
    .set({ lastUsedAt: now })
    .where(
      and(
        eq(accessTokens.id, token.id),
        or(
          isNull(accessTokens.lastUsedAt),
          sql`${accessTokens.lastUsedAt} < ${now.toISOString()}::timestamptz - interval '1 minute'`,
        ),
      ),
    );
  return { ...user, tokenId: token.id, tokenScopes: token.scopes };
}
