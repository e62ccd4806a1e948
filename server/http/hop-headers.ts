import type { IncomingHttpHeaders } from "node:http";

/** Headers without hop-by-hop headers (RFC 9110, 7.6.1) and without headers for a proxy. */
export function withoutHops(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = String(headers.connection ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim());
  const hops = new Set(["connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", ...named]);
  // A client that names these would have a body taken for a second request.
  for (const name of ["content-length", "transfer-encoding", "host"]) hops.delete(name);
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !hops.has(name) && !name.startsWith("proxy-auth")),
  );
}
