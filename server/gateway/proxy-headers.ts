/** What of a request reaches the workspace, and what of its answer reaches the browser. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";

/** Made by browsers and proxies in front of us, or by somebody who wants to be taken for one. */
const NOT_FORWARDED = [
  "authorization",
  "cookie",
  // Node has answered it. The proxy tells no listener of a request with it.
  "expect",
  "forwarded",
  "proxy-authorization",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
  "x-http-method",
  "x-http-method-override",
  "x-method-override",
  "x-real-ip",
];

/** Takes out every credential of the client's own and puts in the server's token. */
export function prepareRequest(request: IncomingMessage, serverToken: string): void {
  for (const name of NOT_FORWARDED) delete request.headers[name];
  request.headers.authorization = `token ${serverToken}`;
  request.url = withoutToken(request.url ?? "/");
}

/** The target without `token` in its query; everything else stays byte for byte. */
export function withoutToken(target: string): string {
  const [path = "/", ...rest] = target.split("?");
  if (rest.length === 0) return target;
  const kept = rest
    .join("?")
    .split("&")
    .filter((pair) => !isToken(pair.split("=")[0] ?? ""));
  return kept.length === 0 ? path : `${path}?${kept.join("&")}`;
}

function isToken(name: string): boolean {
  try {
    return decodeURIComponent(name.replaceAll("+", " ")).trim().toLowerCase() === "token";
  } catch {
    return false;
  }
}

/** Programs in a workspace are their user's; they get no say over other origins, nor over cookies. */
export function guardResponse(headers: IncomingHttpHeaders): void {
  for (const name of Object.keys(headers)) {
    if (name.startsWith("access-control-") || name === "set-cookie" || name === "clear-site-data") delete headers[name];
  }
  headers["x-content-type-options"] = "nosniff";
  headers["referrer-policy"] = "same-origin";
  headers["cross-origin-opener-policy"] = "same-origin";
  headers["cross-origin-resource-policy"] = "same-origin";
  headers["origin-agent-cluster"] = "?1";
  headers["x-frame-options"] = "SAMEORIGIN";
}
