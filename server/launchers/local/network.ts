/**
 * The network of local workspaces. Each workspace has a network namespace with only a loopback. Connections to the
 * broker and to the internet pass Unix sockets that are mounted read-only. JupyterLab listens on a Unix socket too.
 */
import path from "node:path";
import { workspaceSockets } from "#server/workspace-sockets.ts";

/** The folder of a workspace's sockets to the broker and to its egress proxy, as the workspace sees it. */
export const SOCKETS_INSIDE = "/run/sluice-network";

/**
 * Port on a workspace's loopback that speaks HTTP CONNECT and SOCKS5. The forwarder takes the next two ports as well, for
 * connections and DNS queries that the kernel redirects.
 */
export const EGRESS_PORT = 3128;

/** Name of the broker's socket in a workspace's folder. */
export const BROKER_SOCKET = "broker.sock";

export const FORWARDER = path.join(import.meta.dirname, "egress-forward.py");
export const FORWARDER_INSIDE = "/opt/sluice/egress-forward.py";

/** The folder of a workspace's sockets on the host. */
export const socketsOf = (stateDir: string, id: string): string => path.join(workspaceSockets(stateDir), id);

/** The command of the forwarder from the loopback ports to the egress socket. */
export function forwardCommand(python: string): string {
  return `${python} -I -S ${FORWARDER_INSIDE} ${EGRESS_PORT} ${SOCKETS_INSIDE}/egress.sock`;
}

/** The URL of the broker's socket in a sandbox, in the syntax of jupyter_server and requests-unixsocket. */
export const BROKER_INSIDE = `http+unix://${encodeURIComponent(`${SOCKETS_INSIDE}/${BROKER_SOCKET}`)}`;

/** The proxy variables of a workspace, in both cases, because some programs read only one. */
export function proxyVariables(): Record<string, string> {
  const proxy = `http://127.0.0.1:${EGRESS_PORT}`;
  const values = { http_proxy: proxy, https_proxy: proxy, all_proxy: proxy, no_proxy: "localhost,127.0.0.1,::1" };
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => [
      [name, value],
      [name.toUpperCase(), value],
    ]),
  );
}
