import type { JupyterServer } from "#server/jupyter/server-settings.ts";
import type { WorkspaceRow } from "./load.ts";

/** Where the workspace's Jupyter server answers; undefined while none runs. */
export function jupyterServerOf(row: WorkspaceRow): JupyterServer | undefined {
  const runs = row.desired === "running" && row.observed === "running";
  if (!runs || row.endpoint === null || row.serverToken === null) return undefined;
  return { endpoint: row.endpoint, token: row.serverToken };
}
