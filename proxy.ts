/** Before every page: whoever has no session goes to sign in and comes back, and each request gets a trace id. */
import { type NextRequest, NextResponse } from "next/server";
import { SESSION_COOKIE } from "#server/auth/session-cookie-name.ts";
import { env } from "#server/env.ts";

/** Pages for people who are not signed in. */
const open = /^\/(?:$|sign-in(?:\/|$)|setup(?:\/|$)|invite\/|password\/|healthz$)/;

/**
 * What a page of ours may load and do; it is framed by nobody. Next puts the nonce on its own scripts, whose inline
 * ones no list of hosts could name; every page is rendered on request, so each answer has a nonce of its own.
 */
const policy = (nonce: string) => [
  "default-src 'self'",
  `script-src 'self' 'nonce-${nonce}' 'strict-dynamic'`,
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  // A workspace's page asks the workspace's own hostname whether this browser reaches it, before going there.
  `connect-src 'self' ${workspaceOrigins()}`,
  "object-src 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
];

/** `http://*.localhost:3002` */
function workspaceOrigins(): string {
  const gateway = new URL(env().SLUICE_GATEWAY_URL);
  return `${gateway.protocol}//*.${env().SLUICE_GATEWAY_HOST}${gateway.port === "" ? "" : `:${gateway.port}`}`;
}

export function proxy(request: NextRequest): NextResponse {
  const { pathname, search } = request.nextUrl;
  if (!open.test(pathname) && !request.cookies.has(SESSION_COOKIE)) {
    // Whether the cookie is good is decided where data is read; this only spares a look at an empty page.
    const target = new URL("/sign-in", request.url);
    target.searchParams.set("next", `${pathname}${search}`);
    return NextResponse.redirect(target);
  }
  const headers = new Headers(request.headers);
  if (!headers.has("traceparent")) {
    const hex = (bytes: number) => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex");
    headers.set("traceparent", `00-${hex(16)}-${hex(8)}-01`);
  }
  const header = policy(Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("base64")).join("; ");
  // Next reads the nonce from the request.
  headers.set("Content-Security-Policy", header);
  const response = NextResponse.next({ request: { headers } });
  response.headers.set("Content-Security-Policy", header);
  return response;
}

export const config = {
  // All but the API, what was built, and the one file that lies beside the pages: also what turns out to be no page.
  matcher: ["/((?!api/|_next/|icon\\.svg$).*)"],
};
