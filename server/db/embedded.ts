/**
 * A real PostgreSQL from npm packages, for an installation without one of its own. The server runs as a child of the
 * caller, listens on a Unix socket alone, keeps its data below the state directory, and ends with its parent.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { shortFolder } from "#server/short-folder.ts";
import { connect, DEFAULT_PORT, SOCKET_NAME } from "./connect.ts";
import { type Binaries, findBinaries, giveToServer, initialize } from "./embedded-program.ts";
import { findRun, startRun, supervise } from "./embedded-server.ts";

export type EmbeddedPostgres = {
  /** Connection string of the database `sluice`. */
  url: string;
  /** The server's Unix socket; the path has at most 107 bytes. */
  socket: string;
  /** Process id of the server that this call started or found. A restart changes the id. */
  pid: number | undefined;
  /** Whether a server that was already running on this data directory was taken over. */
  adopted: boolean;
  stop: () => Promise<void>;
};

/** Relative to the data directory, the server's working directory, so that the state directory may have a long path. */
const SOCKET_FOLDER = "../socket";

export type EmbeddedOptions = {
  onLog?: (line: string) => void;
  /** Turns supervision on. Called with the reason before a server that ended by itself is started again. */
  onRestart?: (reason: string) => void;
  settings?: Record<string, string>;
  /** The programs of another PostgreSQL than the one that npm installed. */
  binaries?: Binaries;
};

/** Starts (and on first use initializes) the server whose data are in `<stateDir>/pg`. */
export async function startEmbeddedPostgres(
  stateDir: string,
  options: EmbeddedOptions = {},
): Promise<EmbeddedPostgres> {
  const home = path.join(stateDir, "pg");
  const data = path.join(home, "data");
  await mkdir(home, { recursive: true, mode: 0o700 });
  const binaries = options.binaries ?? (await findBinaries());
  const password = await keepPassword(path.join(home, "password"));
  if (!existsSync(path.join(data, "PG_VERSION"))) await initialize(binaries, data, path.join(home, "password"));
  const socketFolder = path.join(await shortFolder(stateDir), "pg", "socket");
  await mkdir(path.join(home, "socket"), { recursive: true });
  await chmod(path.join(home, "socket"), 0o700);
  giveToServer(path.join(home, "socket"));

  const own = { listen_addresses: "", unix_socket_directories: SOCKET_FOLDER, port: DEFAULT_PORT };
  const settings = { ...own, ...options.settings };
  const start = () => startRun(binaries, data, settings, options.onLog);
  const found = await findRun(data);
  const isAdopted = found?.socketFolder === SOCKET_FOLDER;
  // A server of an older version listens on TCP.
  if (found !== undefined && !isAdopted) await found.stop();
  const run = isAdopted ? found : await start();
  const stop = options.onRestart === undefined ? run.stop : supervise(run, start, options.onRestart);
  const url = await ensureDatabase(password, socketFolder);
  return { url, socket: path.join(socketFolder, SOCKET_NAME), pid: run.pid, adopted: isAdopted, stop };
}

async function keepPassword(file: string): Promise<string> {
  if (!existsSync(file)) await writeFile(file, randomBytes(24).toString("hex"), { mode: 0o600, flag: "wx" });
  return (await readFile(file, "utf8")).trim();
}

async function ensureDatabase(password: string, socketFolder: string): Promise<string> {
  const at = (name: string) =>
    `postgres://sluice:${password}@localhost/${name}?host=${encodeURIComponent(socketFolder)}`;
  const sql = connect(at("postgres"), { max: 1, connect_timeout: 10, onnotice: () => undefined });
  try {
    const [there] = await sql`select 1 from pg_database where datname = 'sluice'`;
    if (there === undefined) await sql`create database sluice`;
  } finally {
    await sql.end({ timeout: 5 });
  }
  return at("sluice");
}
