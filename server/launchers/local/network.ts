/**
 * The network of local workspaces. Each workspace has a network namespace with only a loopback. Connections to the
 * broker and to the internet pass Unix sockets that are mounted read-only. JupyterLab listens on a Unix socket too.
 */
import path from "node:path";
import { egressFolder } from "#server/egress/egress-folder.ts";

/** Folders of sockets as a workspace sees them. */
export const INSIDE = { broker: "/run/sluice-broker", egress: "/run/sluice-egress" };

/** Port on a workspace's loopback that speaks HTTP CONNECT and SOCKS5. */
export const EGRESS_PORT = 3128;

/** The broker's socket in its folder. */
export const BROKER_SOCKET = "broker.sock";

export const FORWARDER = path.join(import.meta.dirname, "egress-forward.py");
export const FORWARDER_INSIDE = "/opt/sluice/egress-forward.py";

/** The folder of the broker's socket on the host. Every local workspace mounts the folder. */
export const brokerFolder = (stateDir: string): string => path.join(stateDir, "broker");

/** The folder of a workspace's egress socket on the host. */
export const egressFolderOf = (stateDir: string, id: string): string => path.join(egressFolder(stateDir), id);

/** The command of the forwarder from the loopback port to the egress socket. */
export function forwardCommand(python: string): string {
  return `${python} -I -S ${FORWARDER_INSIDE} ${EGRESS_PORT} ${INSIDE.egress}/egress.sock`;
}

/** The URL of the broker's socket in a sandbox, in the syntax of jupyter_server and requests-unixsocket. */
export const BROKER_INSIDE = `http+unix://${encodeURIComponent(`${INSIDE.broker}/${BROKER_SOCKET}`)}`;

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
