import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { sampleOrigin } from "./sample-origin.ts";

/**
 * A request that changes something and may be carried by a cookie must come from a page of the portal itself.
 * Browsers say where a request comes from; programs that say nothing are let through only without a cookie.
 * Bearer tokens are sent by no browser on its own, so they are exempt.
 */
export function refuseCrossOrigin(request: Request): void {
  if (request.method === "GET" || request.method === "HEAD") return;
  const { headers } = request;
  if (headers.get("authorization") !== null) return;
  const site = headers.get("sec-fetch-site");
  const origin = headers.get("origin");
  const known = site !== null || origin !== null;
  const own = (site === null || site === "same-origin") && (origin === null || isOwnOrigin(origin));
  if (known ? own : headers.get("cookie") === null) return;
  throw new SluiceError("forbidden", "This request does not come from a page of this portal.");
}

/** Whether it is the portal as it is configured: what a request says of its own host proves nothing. */
function isOwnOrigin(origin: string): boolean {
  const { SLUICE_PORTAL_URL: portal } = env();
  return origin === new URL(portal).origin || origin === sampleOrigin(portal);
}
