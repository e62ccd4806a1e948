/** `/healthz` of the egress process, on a Unix socket: the process has no port of its own. */
import { mkdir } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import type { ProcessHealth } from "#server/contracts/health.ts";
import { answersSoon } from "#server/db/answers-soon.ts";
import type { Database } from "#server/db/client.ts";
import { listenInFolder } from "#server/listen-in-folder.ts";
import { VERSION } from "#server/version.ts";

const NAME = "health.sock";

const folderOf = (stateDir: string): string => path.join(stateDir, "egress");

/** The socket lies outside of all folders that workspaces see. */
export const egressHealthSocket = (stateDir: string): string => path.join(folderOf(stateDir), NAME);

/** Answers 200 while the database answers, else 503. */
export async function serveEgressHealth(db: Pick<Database, "execute">, stateDir: string): Promise<() => void> {
  const server = createServer((request, response) => {
    if (request.url !== "/healthz") return void response.writeHead(404).end();
    void answersSoon(db).then(
      () => response.end(JSON.stringify({ status: "ok", version: VERSION } satisfies ProcessHealth)),
      () => response.writeHead(503).end(),
    );
  });
  const folder = folderOf(stateDir);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await listenInFolder(server, folder, NAME, 0o600);
  return () => {
    server.close();
    server.closeAllConnections();
  };
}
