/** Which workspace a request is for, and what is refused before anything else is looked at. */
import type { IncomingMessage } from "node:http";
import { SluiceError } from "#server/errors.ts";

export type GatewayAddress = {
  /** `localhost`: a workspace's host is `<id>.<host>`. */
  host: string;
  /** Where browsers reach the gateway; gives scheme and port of every workspace's origin. */
  url: string;
};

/** The workspace that a Host header names, or undefined when it is none of ours. */
export function workspaceOfHost(header: string | undefined, address: GatewayAddress): string | undefined {
  const host = (header ?? "").toLowerCase().replace(/:\d+$/, "");
  const suffix = `.${address.host}`;
  if (!host.endsWith(suffix)) return undefined;
  const label = host.slice(0, -suffix.length);
  return /^ws-[a-z2-7]{26}$/.test(label) ? label : undefined;
}

/** `http://ws-….localhost:3002`. */
export function originOf(workspaceId: string, address: GatewayAddress): string {
  const { protocol, port } = new URL(address.url);
  return `${protocol}//${workspaceId}.${address.host}${port === "" ? "" : `:${port}`}`;
}

/** A request target in any other form than a path could name another host. */
export function checkTarget(request: IncomingMessage): string {
  const target = request.url ?? "";
  if (!target.startsWith("/") || target.startsWith("//") || target.includes("\\")) {
    throw new SluiceError("invalid", "This address is not well-formed.");
  }
  return target;
}

/**
 * The gateway speaks to the server with the server's own token, so a request must come from the workspace's own
 * pages: exact Origin on upgrades and on everything that changes something, nothing from other sites but a person's
 * click on a link.
 */
export function checkOrigin(request: IncomingMessage, origin: string, kind: "http" | "upgrade"): void {
  const refuse = (): never => {
    throw new SluiceError("forbidden", "This request came from another site than the workspace itself.");
  };
  const given = request.headers.origin;
  if (given !== undefined && given !== origin) refuse();
  const method = request.method ?? "GET";
  const safe = method === "GET" || method === "HEAD";
  if ((kind === "upgrade" || !safe) && given === undefined) refuse();
  const site = request.headers["sec-fetch-site"];
  if (site === undefined || site === "same-origin" || site === "none") return;
  const click =
    kind === "http" &&
    method === "GET" &&
    request.headers["sec-fetch-mode"] === "navigate" &&
    request.headers["sec-fetch-dest"] === "document";
  if (!click) refuse();
}
