/** What a viewer may ask of a workspace: to look, and nothing that starts, runs or changes something. */
import type { IncomingMessage } from "node:http";

/**
 * JupyterLab's own pages and files, and what its server says of the workspace's. A list of what is let through, since an
 * extension's GET may do anything; whole paths, as the server matches them, not decoded.
 */
const READABLE = [
  /^\/lab$/,
  /^\/lab\/(?:tree|doc|workspaces)(?:\/|$)/,
  /^\/lab\/extensions\//,
  /^\/lab\/api\/(?:settings|workspaces|listings|themes|translations)(?:\/|$)/,
  /^\/static\//,
  /^\/favicon\.ico$/,
  /^\/custom\//,
  /^\/files\//,
  /^\/kernelspecs\//,
  /^\/api$/,
  /^\/api\/(?:me|status|kernelspecs|sessions|terminals)$/,
  /^\/api\/kernels(?:\/[0-9a-f-]{36})?$/,
  /^\/api\/contents(?:\/|$)/,
];

/** Whether a request only reads: for sure, and not an upgrade, whose messages nobody looks at. */
export function isReading(request: IncomingMessage): boolean {
  const { method, headers, url = "" } = request;
  if (method !== "GET" && method !== "HEAD") return false;
  if (headers.upgrade !== undefined) return false;
  // A body has no meaning here, and two servers might not agree where it ends.
  if (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) !== 0) return false;
  const path = url.split("?")[0] ?? "";
  return !walksUp(path) && READABLE.some((allowed) => allowed.test(path));
}

/** A path that names another one than it looks: with `..`, an empty part or an escaped slash, however often escaped. */
function walksUp(path: string): boolean {
  let decoded = path;
  for (let turn = 0; turn < 3; turn++) {
    if (/(?:^|\/)\.{1,2}(?:\/|$)|\/\/|\\|\0/.test(decoded)) return true;
    const next = decode(decoded);
    if (next === undefined || next === decoded) return false;
    decoded = next;
  }
  return true;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
