/** next-auth proves who somebody is (password or OIDC); the session itself is a row in `sessions`. */
import type { AuthOptions, Profile } from "next-auth";
import type { JWT } from "next-auth/jwt";
import type { OAuthConfig } from "next-auth/providers/oauth";
import { z } from "zod";
import { authSecret } from "#server/auth/keys.ts";
import { system } from "#server/auth/principal.ts";
import { fromSession } from "#server/auth/principal-from-request.ts";
import { cookieOptions, SESSION_COOKIE } from "#server/auth/session-cookie.ts";
import { type Context, systemContext } from "#server/context.ts";
import { database } from "#server/db/client.ts";
import { env } from "#server/env.ts";
import { SluiceError, toSluiceError } from "#server/errors.ts";
import { BoundedAgent } from "#server/http/bounded-answer.ts";
import { clientAddress } from "#server/http/client-address.ts";
import { logger, traceIdFrom } from "#server/log.ts";
import { createSession, SESSION_SECONDS } from "#server/services/session/create.ts";
import { end } from "#server/services/session/end.ts";
import { signInWithOidc } from "#server/services/session/sign-in-with-oidc.ts";
import { signInWithPassword } from "#server/services/session/sign-in-with-password.ts";

/** Everything that the identity provider answers: its configuration, its keys, tokens and profiles. */
const PROVIDER_ANSWER = { maxBytes: 1024 * 1024, timeoutMs: 10_000 };

const hostCookie = (name: string) => ({ name: `__Host-sluice-${name}`, options: cookieOptions });

/** The options for one request; `onRefused` hears why a password was not taken, where that is more than being wrong. */
export async function authOptions(
  request: Request,
  onRefused: (error: SluiceError) => void = () => undefined,
): Promise<AuthOptions> {
  const address = clientAddress(request.headers) ?? undefined;
  const traceId = traceIdFrom(request.headers.get("traceparent"));
  const ctx: Context = { ...systemContext(database().db, { traceId }), address };
  const userAgent = request.headers.get("user-agent");
  return {
    secret: await authSecret(),
    session: { strategy: "jwt", maxAge: SESSION_SECONDS, updateAge: 24 * 3600 },
    pages: { signIn: "/sign-in", error: "/sign-in" },
    useSecureCookies: true,
    cookies: {
      sessionToken: { name: SESSION_COOKIE, options: cookieOptions },
      csrfToken: hostCookie("csrf"),
      callbackUrl: hostCookie("callback"),
      state: hostCookie("state"),
      nonce: hostCookie("nonce"),
      pkceCodeVerifier: hostCookie("pkce"),
    },
    providers: [passwordProvider(ctx, request, onRefused), ...oidcProvider()],
    callbacks: {
      async signIn({ account, profile }) {
        if (account?.provider !== "oidc") return true;
        try {
          return (await oidcUser(ctx, profile)) !== undefined;
        } catch (error) {
          throw publicError(ctx, error);
        }
      },
      async jwt({ token, user, account, profile }) {
        if (account == null) return await checked(ctx, token);
        const signedIn = account.provider === "oidc" ? await oidcUser(ctx, profile) : { userId: user.id };
        if (signedIn === undefined) throw new SluiceError("unauthenticated", "Sign in first.");
        const by = account.provider === "oidc" ? "oidc" : "password";
        const { sessionId } = await createSession(ctx, { userId: signedIn.userId, userAgent, address, by });
        return { sub: signedIn.userId, sid: sessionId };
      },
      async session({ session, token }) {
        const principal = await fromSession(ctx.db, String(token.sid), ctx.now);
        const user = principal.kind === "user" ? { name: principal.name, email: principal.email } : undefined;
        return { expires: session.expires, user };
      },
    },
    events: {
      async signOut({ token }) {
        if (typeof token?.sid !== "string") return;
        const principal = await fromSession(ctx.db, token.sid, ctx.now);
        await end({ ...ctx, principal }, { sessionId: token.sid });
      },
    },
    logger: {
      error: (code) => logger("auth").warn({ code, traceId: ctx.traceId }, "sign-in did not work"),
      warn: () => undefined,
      debug: () => undefined,
    },
  };
}

function passwordProvider(
  ctx: Context,
  request: Request,
  onRefused: (error: SluiceError) => void,
): AuthOptions["providers"][number] {
  return {
    id: "credentials",
    name: "Password",
    type: "credentials",
    credentials: { email: { label: "E-mail", type: "email" }, password: { label: "Password", type: "password" } },
    async authorize(credentials) {
      const { email, password } = (credentials ?? {}) as { email?: string; password?: string };
      try {
        // Attempts are counted for the e-mail alone too: an address can be made up.
        const address = clientAddress(request.headers) ?? "unknown";
        const user = await signInWithPassword(ctx, { email: email ?? "", password: password ?? "", address });
        return { id: user.userId, email: user.email, name: user.name };
      } catch (error) {
        const known = toSluiceError(error);
        // Wrong, or nothing that could be right: it is the same "do not belong together".
        if (known.code === "unauthenticated" || known.code === "invalid") return null;
        onRefused(known);
        throw publicError(ctx, error);
      }
    },
  };
}

/**
 * What next-auth puts into the address of the sign-in page: one of a few words, never an error's own text, which may be
 * a statement of SQL. What is a fault of ours is in the log.
 */
function publicError(ctx: Context, thrown: unknown): Error {
  const error = toSluiceError(thrown);
  if (error.code === "too-many" || error.code === "refused") return new Error("TooManyAttempts");
  logger("auth").error({ err: thrown, traceId: ctx.traceId }, error.message);
  return new Error("Unavailable");
}

function oidcProvider(): OAuthConfig<Profile>[] {
  const { SLUICE_OIDC_ISSUER: issuer, SLUICE_OIDC_CLIENT_ID, SLUICE_OIDC_CLIENT_SECRET } = env();
  const { SLUICE_OIDC_NAME, SLUICE_OIDC_SCOPE } = env();
  if (issuer === undefined || SLUICE_OIDC_CLIENT_ID === undefined) return [];
  return [
    {
      id: "oidc",
      name: SLUICE_OIDC_NAME,
      type: "oauth",
      wellKnown: `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`,
      clientId: SLUICE_OIDC_CLIENT_ID,
      clientSecret: SLUICE_OIDC_CLIENT_SECRET,
      authorization: { params: { scope: SLUICE_OIDC_SCOPE } },
      idToken: true,
      checks: ["pkce", "state", "nonce"],
      // The library follows no redirect, and reads a body of any length for any time.
      httpOptions: { agent: new BoundedAgent(issuer.startsWith("https:") ? "https:" : "http:", PROVIDER_ANSWER) },
      profile: (profile) => ({ id: profile.sub ?? "", name: profile.name ?? profile.sub, email: profile.email }),
    },
  ];
}

const oidcProfile = z.object({
  sub: z.string().min(1),
  email: z.string().optional(),
  email_verified: z.boolean().optional(),
  name: z.string().optional(),
});

/** Providers send one group as a word, several as a list; `undefined` where they say nothing that is either. */
const groupsClaim = z
  .union([z.string().transform((one) => [one]), z.array(z.string())])
  .optional()
  .catch(undefined);

async function oidcUser(ctx: Context, profile: Profile | undefined): Promise<{ userId: string } | undefined> {
  const { SLUICE_OIDC_ISSUER: issuer, SLUICE_OIDC_GROUPS_CLAIM: groupsName } = env();
  const given = oidcProfile.safeParse(profile);
  if (issuer === undefined || !given.success) return undefined;
  const { sub: subject, email, email_verified: emailVerified = false, name } = given.data;
  const groups = groupsClaim.parse(Object.entries(profile ?? {}).find(([claim]) => claim === groupsName)?.[1]);
  try {
    const identity = { issuer, subject, email, emailVerified, name, groups };
    return await signInWithOidc({ ...ctx, principal: system }, identity);
  } catch (error) {
    if (error instanceof SluiceError) return undefined;
    throw error;
  }
}

/** A token whose session was ended counts for nothing; next-auth then clears the cookie. */
async function checked(ctx: Context, token: JWT): Promise<JWT> {
  const principal = typeof token.sid === "string" ? await fromSession(ctx.db, token.sid, ctx.now) : undefined;
  if (principal?.kind !== "user") throw new SluiceError("unauthenticated", "Sign in first.");
  return token;
}
