/** The portal's cookie: host-only, a signed and encrypted token that holds the id of a row in `sessions`. */
import { decode, encode } from "next-auth/jwt";
import { authSecret } from "#server/auth/keys.ts";
import { SESSION_COOKIE } from "#server/auth/session-cookie-name.ts";

export { SESSION_COOKIE };

export const cookieOptions = { httpOnly: true, sameSite: "lax" as const, path: "/", secure: true };

/** The cookie's value for a session. */
export async function encodeSession(input: {
  sessionId: string;
  userId: string;
  expiresAt: Date;
  now?: Date;
}): Promise<string> {
  const maxAge = Math.max(0, Math.floor((input.expiresAt.getTime() - (input.now ?? new Date()).getTime()) / 1000));
  return await encode({ token: { sub: input.userId, sid: input.sessionId }, secret: await authSecret(), maxAge });
}

/** The session id in a cookie header; undefined when there is none, or it is forged or over. */
export async function sessionIdFromCookies(header: string | null): Promise<string | undefined> {
  const value = readCookie(header, SESSION_COOKIE);
  if (value === undefined) return undefined;
  try {
    const token = await decode({ token: value, secret: await authSecret() });
    return typeof token?.sid === "string" ? token.sid : undefined;
  } catch {
    return undefined;
  }
}

/** `Set-Cookie` for a new session. */
export function setSessionCookie(value: string, expiresAt: Date): string {
  return `${SESSION_COOKIE}=${value}; Path=/; Expires=${expiresAt.toUTCString()}; HttpOnly; Secure; SameSite=Lax`;
}

/** The value of one cookie of a header, as it stands there. */
export function readCookie(header: string | null, name: string): string | undefined {
  for (const part of (header ?? "").split(";")) {
    const at = part.indexOf("=");
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return undefined;
}
