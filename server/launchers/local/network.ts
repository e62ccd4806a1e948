/**
 * The network of local workspaces. Each has a namespace of its own with a loopback and nothing else; what leaves it
 * goes through Unix sockets that lie in it read-only, and the server in it listens on one, too.
 */
import path from "node:path";
import { egressFolder } from "#server/egress/egress-folder.ts";

/** Folders of sockets as a workspace sees them. */
export const INSIDE = { broker: "/run/sluice-broker", egress: "/run/sluice-egress" };

/** Port of a workspace's own loopback where HTTP CONNECT and SOCKS5 are offered. */
export const WAY_OUT_PORT = 3128;

/** The broker's socket in its folder. */
export const BROKER_SOCKET = "broker.sock";

export const FORWARDER = path.join(import.meta.dirname, "egress-forward.py");
export const FORWARDER_INSIDE = "/opt/sluice/egress-forward.py";

/** The folder of the broker's socket on the host, which every local workspace sees. */
export const brokerFolder = (stateDir: string): string => path.join(stateDir, "broker");

/** The folder of the socket that is a workspace's way out, on the host. */
export const egressFolderOf = (stateDir: string, id: string): string => path.join(egressFolder(stateDir), id);

/** The command that keeps a workspace's way out open, for init.sh. */
export function wayOutCommand(python: string): string {
  return `${python} -I -S ${FORWARDER_INSIDE} ${WAY_OUT_PORT} ${INSIDE.egress}/egress.sock`;
}

/** The broker's socket in a sandbox, in the spelling that jupyter_server and requests-unixsocket have for it. */
export const BROKER_INSIDE = `http+unix://${encodeURIComponent(`${INSIDE.broker}/${BROKER_SOCKET}`)}`;

/** The proxy variables of a workspace, in both spellings: some programs know one alone. */
export function wayOutVariables(): Record<string, string> {
  const proxy = `http://127.0.0.1:${WAY_OUT_PORT}`;
  const values = { http_proxy: proxy, https_proxy: proxy, all_proxy: proxy, no_proxy: "localhost,127.0.0.1,::1" };
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => [
      [name, value],
      [name.toUpperCase(), value],
    ]),
  );
}
