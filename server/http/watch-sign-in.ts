import type { Principal } from "#server/auth/principal.ts";
import { principalFromHeaders } from "#server/auth/principal-from-request.ts";
import type { Context } from "#server/context.ts";
import { subscribe } from "#server/live.ts";
import { logger } from "#server/log.ts";

/** How soon the end of a session by its age alone is noticed. */
const LOOK_MS = 30_000;
/** Until the next look when the database did not answer. */
const RETRY_MS = 500;

/**
 * Calls `onEnded` once when whoever made the request is not signed in any more: the session or the access token was
 * ended, or the account was deactivated. Until the returned function is called. Whoever is not signed in has nothing
 * to lose.
 */
export function watchSignIn(ctx: Context & { request: Request }, onEnded: () => void): () => void {
  const credential = credentialOf(ctx.principal);
  if (credential === undefined) return () => undefined;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  const stop = () => {
    isStopped = true;
    clearTimeout(timer);
    unsubscribe();
  };
  const look = async (): Promise<void> => {
    let wait = LOOK_MS;
    try {
      const now = await principalFromHeaders(ctx.db, ctx.request.headers, { isSeenBefore: true });
      if (isStopped) return;
      if (credentialOf(now) !== credential) {
        stop();
        return onEnded();
      }
    } catch (error) {
      // Nobody can be checked while the database is away.
      logger("portal").debug({ err: error, traceId: ctx.traceId }, "a stream's sign-in could not be checked");
      wait = RETRY_MS;
    }
    clearTimeout(timer);
    if (!isStopped) timer = setTimeout(() => void look(), wait).unref();
  };
  const unsubscribe = subscribe(["session"], ({ id }) => {
    if (id === null || id === credential) void look();
  });
  // It may have ended between the check of the request and now.
  void look();
  return stop;
}

/** What the person is signed in by: the id of a session or of an access token. */
function credentialOf(principal: Principal): string | undefined {
  return principal.kind === "user" ? (principal.tokenId ?? principal.sessionId) : undefined;
}
