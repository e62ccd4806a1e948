/**
 * Unix sockets for local workspaces: a folder for each workspace, which the workspace sees read-only, and a server on a
 * socket in it. What one workspace takes of its server is not taken from another one.
 */
import { type FSWatcher, watch } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import type { Server } from "node:net";
import path from "node:path";
import { isWorkspaceId } from "#server/ids.ts";
import { listenInFolder } from "#server/listen-in-folder.ts";
import type { Logger } from "#server/log.ts";

/** Folders come and go with workspaces. The regular look finds those that the watch missed. */
const LOOK_MS = 1_000;

/** The folder with a folder for each workspace. */
export const workspaceSockets = (stateDir: string): string => path.join(stateDir, "workspace-sockets");

/** A server that does not listen yet. `close` ends its connections as well. */
export type Service = { server: Server; close: () => void };

export type ServeOptions = {
  stateDir: string;
  /** Name of the socket in a workspace's folder. */
  name: string;
  log: Logger;
  serve: (workspaceId: string) => Service;
};

export type Serving = {
  /** Looks for new and removed workspaces now. */
  look: () => Promise<void>;
  close: () => Promise<void>;
};

/** Serves each workspace that has a folder; settles when those that are there have their sockets. */
export async function serveWorkspaces({ stateDir, name, log, serve }: ServeOptions): Promise<Serving> {
  const folder = workspaceSockets(stateDir);
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const open = new Map<string, Service>();
  const begin = async (id: string) => {
    const service = serve(id);
    open.set(id, service);
    try {
      await listenInFolder(service.server, path.join(folder, id), name, 0o666);
    } catch (error) {
      // A folder that is still there is tried at the next look.
      log.debug({ err: error, workspaceId: id }, "no socket yet");
      open.delete(id);
      service.close();
    }
  };
  const round = async () => {
    const present = new Set((await readdir(folder)).filter(isWorkspaceId));
    for (const [id, service] of open) {
      if (present.has(id)) continue;
      open.delete(id);
      service.close();
    }
    for (const id of present) if (!open.has(id)) await begin(id);
  };
  let looking: Promise<void> | undefined;
  const look = async () => {
    looking ??= round()
      .catch((error: unknown) => log.warn({ err: error }, "folders of workspaces could not be read"))
      .finally(() => {
        looking = undefined;
      });
    await looking;
  };
  const watcher = watchFolder(folder, () => void look());
  const timer = setInterval(() => void look(), LOOK_MS);
  await look();
  return {
    look,
    close: async () => {
      watcher?.close();
      clearInterval(timer);
      await looking;
      for (const service of open.values()) service.close();
    },
  };
}

/** Sees new folders at once. On a host without a free inotify instance, the regular look does alone. */
function watchFolder(folder: string, onChange: () => void): FSWatcher | undefined {
  try {
    return watch(folder, onChange).on("error", () => undefined);
  } catch {
    return undefined;
  }
}
