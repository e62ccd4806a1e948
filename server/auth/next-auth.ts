/** next-auth proves who somebody is (password or OIDC); the session itself is a row in `sessions`. */
import type { AuthOptions, Profile } from "next-auth";
import type { JWT } from "next-auth/jwt";
import type { OAuthConfig } from "next-auth/providers/oauth";
import { authSecret } from "#server/auth/keys.ts";
import { identityOf } from "#server/auth/oidc-claims.ts";
import { fromSession } from "#server/auth/principal-from-request.ts";
import { providerFailure } from "#server/auth/provider-failure.ts";
import { cookieOptions, SESSION_COOKIE } from "#server/auth/session-cookie.ts";
import { type Context, systemContext } from "#server/context.ts";
import { database } from "#server/db/client.ts";
import { env } from "#server/env.ts";
import { SluiceError, toSluiceError } from "#server/errors.ts";
import { BoundedAgent } from "#server/http/bounded-answer.ts";
import { clientAddress } from "#server/http/client-address.ts";
import { logger, newTraceId } from "#server/log.ts";
import { createSession, SESSION_SECONDS } from "#server/services/session/create.ts";
import { end } from "#server/services/session/end.ts";
import { recordRefusal } from "#server/services/session/record-refusal.ts";
import { SignInRefused } from "#server/services/session/sign-in-refused.ts";
import { signInWithOidc } from "#server/services/session/sign-in-with-oidc.ts";
import { signInWithPassword } from "#server/services/session/sign-in-with-password.ts";

/** Everything that the identity provider answers: its configuration, its keys, tokens and profiles. */
const PROVIDER_ANSWER = { maxBytes: 1024 * 1024, timeoutMs: 10_000 };

const hostCookie = (name: string) => ({ name: `__Host-sluice-${name}`, options: cookieOptions });

/** Errors that next-auth's response does not carry. */
export type Heard = {
  /** Why a password sign-in was refused, other than for a wrong password. */
  onRefused: (error: SluiceError) => void;
  /** What failed between the portal and the identity provider. */
  onProviderFailure: (error: unknown) => void;
};

/** The context of a sign-in request, before authentication. */
export function signInContext(request: Request): Context {
  // Not the client's: the reference of a refused sign-in is its beginning.
  const traceId = newTraceId();
  return { ...systemContext(database().db, { traceId }), address: clientAddress(request.headers) ?? undefined };
}

/** The sign-in page with the reason of a refusal. `reference` finds the details in the audit. */
export function signInPage(error: string, reference: string): string {
  return `/sign-in?${new URLSearchParams({ error, reference })}`;
}

/** The options for one request. */
export async function authOptions(ctx: Context, request: Request, heard: Heard): Promise<AuthOptions> {
  const { address } = ctx;
  /** The account of this request's ID token, set by `signIn`. */
  let identifiedUserId: string | undefined;
  const userAgent = request.headers.get("user-agent");
  return {
    secret: await authSecret(),
    session: { strategy: "jwt", maxAge: SESSION_SECONDS, updateAge: 24 * 3600 },
    // Settings list the sign-in sessions, with a button that ends this one.
    pages: { signIn: "/sign-in", signOut: "/settings", error: "/sign-in" },
    useSecureCookies: true,
    cookies: {
      sessionToken: { name: SESSION_COOKIE, options: cookieOptions },
      csrfToken: hostCookie("csrf"),
      callbackUrl: hostCookie("callback"),
      state: hostCookie("state"),
      nonce: hostCookie("nonce"),
      pkceCodeVerifier: hostCookie("pkce"),
    },
    providers: [passwordProvider(ctx, request, heard.onRefused), ...oidcProvider(ctx)],
    callbacks: {
      async signIn({ account, profile }) {
        if (account?.provider !== "oidc") return true;
        try {
          const identified = await identify(ctx, profile);
          if ("refused" in identified) return signInPage("AccessDenied", identified.refused);
          identifiedUserId = identified.userId;
          return true;
        } catch (error) {
          throw publicError(ctx, error);
        }
      },
      async jwt({ token, user, account }) {
        if (account == null) return await checked(ctx, token);
        const by = account.provider === "oidc" ? "oidc" : "password";
        const userId = by === "oidc" ? identifiedUserId : user.id;
        if (userId === undefined) throw new SluiceError("unauthenticated", "Sign in first.");
        const { sessionId } = await createSession(ctx, { userId, userAgent, address, by });
        return { sub: userId, sid: sessionId };
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
      error: (code, metadata) => {
        // What fails at the provider is logged with its reason (`recordRefusal`).
        if (code.includes("OAUTH")) heard.onProviderFailure(metadata);
        else logger("auth").warn({ code, traceId: ctx.traceId }, "sign-in did not work");
      },
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
        // Wrong, or nothing that could be right: the answer is the same "Wrong e-mail or password".
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

/** Maximum clock skew between provider and portal. Clocks without NTP drift beyond next-auth's default of 10 s. */
const CLOCK_SKEW_SECONDS = 120;

/** next-auth sets the tolerance itself, under a symbol that its copy of openid-client does not share. */
function allowClockSkew(client: object): void {
  const numbers = Object.getOwnPropertySymbols(client).filter((key) => typeof Reflect.get(client, key) === "number");
  if (numbers.length !== 1 || numbers[0] === undefined)
    throw new Error("openid-client keeps its clock tolerance elsewhere");
  Reflect.set(client, numbers[0], CLOCK_SKEW_SECONDS);
}

/**
 * Claims of the UserInfo endpoint when the ID token lacks some (OpenID Connect Core, 5.4): Okta's org server
 * sends `email_verified` and groups only there. Without an answer, an e-mail without `email_verified` is not verified.
 */
async function saidElsewhere(ctx: Context, claims: Claims, ask: () => Promise<Claims>): Promise<Claims> {
  const wanted = ["email", "email_verified", env().SLUICE_OIDC_GROUPS_CLAIM];
  if (wanted.every((name) => name in claims)) return {};
  try {
    return await ask();
  } catch (error) {
    const { said } = providerFailure(error);
    logger("auth").warn({ said, traceId: ctx.traceId }, "the provider's UserInfo endpoint did not answer");
    // It may have said that the e-mail is not verified.
    return { email_verified: false };
  }
}

function oidcProvider(ctx: Context): OAuthConfig<Profile>[] {
  const { SLUICE_OIDC_ISSUER: issuer, SLUICE_OIDC_CLIENT_ID, SLUICE_OIDC_CLIENT_SECRET } = env();
  const { SLUICE_OIDC_NAME, SLUICE_OIDC_SCOPE } = env();
  if (issuer === undefined || SLUICE_OIDC_CLIENT_ID === undefined) return [];
  /** What the provider says of the person of this request. */
  let profile: Claims = {};
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
      token: {
        async request({ client, params, checks, provider }) {
          allowClockSkew(client);
          const tokens = await client.callback(provider.callbackUrl, params, checks);
          const claims: Profile = tokens.claims();
          const hasUserInfo =
            client.issuer.metadata.userinfo_endpoint !== undefined && tokens.access_token !== undefined;
          // The library refuses an answer about another subject.
          const more = hasUserInfo ? await saidElsewhere(ctx, claims, () => client.userinfo(tokens)) : {};
          // UserInfo may name another e-mail than the ID token.
          const { email_verified: verified, ...others } = more;
          const isSame = claims.email === undefined || claims.email === more.email || verified === false;
          profile = { ...others, ...(isSame && verified !== undefined && { email_verified: verified }), ...claims };
          return { tokens };
        },
      },
      userinfo: { request: async () => await Promise.resolve(profile) },
      checks: ["pkce", "state", "nonce"],
      // The library follows no redirect, and reads a body of any length for any time.
      httpOptions: { agent: new BoundedAgent(issuer.startsWith("https:") ? "https:" : "http:", PROVIDER_ANSWER) },
      profile: ({ sub = "", name = sub, email }) => ({ id: sub, name, email }),
    },
  ];
}

/** The library's type leaves out what it does not read. */
type Claims = Profile & { email_verified?: unknown };

type Identified = { userId: string } | { refused: string };

/** The account of an ID token, or the reference of the audit entry with the reason of the refusal. */
async function identify(ctx: Context, profile: Profile | undefined): Promise<Identified> {
  const { SLUICE_OIDC_ISSUER: issuer = "", SLUICE_OIDC_GROUPS_CLAIM, SLUICE_OIDC_TRUST_EMAIL: trustEmail } = env();
  const identity = identityOf(profile, { issuer, groupsClaim: SLUICE_OIDC_GROUPS_CLAIM, trustEmail });
  try {
    if (identity === undefined) throw new SignInRefused("no-subject");
    return await signInWithOidc(ctx, identity);
  } catch (error) {
    if (!(error instanceof SignInRefused)) throw error;
    const { reason: code, message: reason, userId } = error;
    return { refused: await recordRefusal(ctx, { code, reason, userId, ...identity, issuer }) };
  }
}

/** A token whose session was ended counts for nothing; next-auth then clears the cookie. */
async function checked(ctx: Context, token: JWT): Promise<JWT> {
  const principal = typeof token.sid === "string" ? await fromSession(ctx.db, token.sid, ctx.now) : undefined;
  if (principal?.kind !== "user") throw new SluiceError("unauthenticated", "Sign in first.");
  return token;
}
