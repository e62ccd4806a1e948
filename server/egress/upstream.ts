/** The proxy of the host (`HTTPS_PROXY`, `NO_PROXY`). */
import { request } from "node:http";
import { isIP, type Socket } from "node:net";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import { isNamed } from "./judge.ts";

export type Upstream = {
  address: { host: string; port: number };
  headers: Record<string, string>;
  /** Whether connections to this host go through the proxy. */
  covers: (host: string) => boolean;
  /** Whether the proxy may resolve a name that the host cannot resolve: only names that the policy allows as names. */
  resolves: (host: string, policy: EgressPolicy) => boolean;
};

/** The proxy in the environment; undefined without one, and for a proxy whose URL is not `http://`. */
export function upstreamOf(environment: NodeJS.ProcessEnv): Upstream | undefined {
  const { HTTPS_PROXY, https_proxy = HTTPS_PROXY, HTTP_PROXY, http_proxy = HTTP_PROXY } = environment;
  const url = URL.parse(https_proxy || http_proxy || "");
  if (url?.protocol !== "http:") return undefined;
  const directHosts = (environment.no_proxy ?? environment.NO_PROXY ?? "")
    .split(",")
    .map((entry) =>
      entry
        .trim()
        .toLowerCase()
        .replace(/^\*?\./, ""),
    )
    .filter((entry) => entry !== "");
  const covers = (host: string) => {
    const name = host.toLowerCase();
    return !directHosts.some((entry) => entry === "*" || name === entry || name.endsWith(`.${entry}`));
  };
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return {
    address: { host: url.hostname.replace(/^\[(.*)\]$/, "$1"), port: Number(url.port || 80) },
    headers:
      url.username === "" ? {} : { "proxy-authorization": `Basic ${Buffer.from(credentials).toString("base64")}` },
    covers,
    resolves: (host, policy) => covers(host) && isIP(host) === 0 && isAllowedByName(host.toLowerCase(), policy),
  };
}

function isAllowedByName(name: string, policy: EgressPolicy): boolean {
  // A name with a single label belongs to the host's own network.
  if (policy.mode === "all") return name.includes(".");
  return isNamed(name, policy);
}

/** A connection through the proxy to `target` (`host:port`); `signal` ends the attempt. */
export async function throughUpstream(
  upstream: Upstream,
  target: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Socket> {
  const { address, headers } = upstream;
  const connectRequest = request({ ...address, headers, method: "CONNECT", path: target, agent: false, signal });
  // The timeout is for the whole answer, because a hostile answer may come byte by byte.
  const timer = setTimeout(() => connectRequest.destroy(new Error("the host's proxy does not answer")), timeoutMs);
  const connected = new Promise<Socket>((resolve, reject) => {
    connectRequest.once("connect", (answer, socket: Socket, head) => {
      if (answer.statusCode !== 200) {
        socket.destroy();
        return reject(new Error(`the host's proxy answered ${answer.statusCode}`));
      }
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    connectRequest.once("error", reject).once("response", () => {
      connectRequest.destroy();
      reject(new Error("the host's proxy does not support CONNECT"));
    });
    connectRequest.end();
  });
  return await connected.finally(() => clearTimeout(timer));
}
