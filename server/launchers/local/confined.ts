/**
 * Runs the installer and the compiler of a proposed environment: in the sandbox of workspaces where this machine allows
 * one, with its own variables, home and cache, and within limits of size.
 */
import { existsSync } from "node:fs";
import { chmod, lchown, mkdir, mkdtemp, rm, stat, statfs } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DEFAULT_EGRESS_POLICY, type EgressPolicy } from "#server/contracts/egress.ts";
import { AddressRules } from "#server/egress/addresses.ts";
import { createEgressProxy } from "#server/egress/egress-proxy.ts";
import { EGRESS_SOCKET } from "#server/egress/egress-service.ts";
import { packageIndexes } from "#server/egress/package-indexes.ts";
import { upstreamOf } from "#server/egress/upstream.ts";
import { listenInFolder } from "#server/listen-in-folder.ts";
import { bytesOf } from "./disk-usage.ts";
import { EGRESS_PORT, FORWARDER, FORWARDER_INSIDE, forwardCommand, proxyVariables, SOCKETS_INSIDE } from "./network.ts";
import { runLines } from "./processes.ts";
import { type Mount, probeSandbox, sandboxCommand, workspaceUid } from "./sandbox.ts";

const GIB = 1024 ** 3;

/** Maximum size of one proposal, minimum free space, and maximum size of the cache between proposals. */
export const DISK = { buildBytes: 20 * GIB, freeBytes: GIB, cacheBytes: 5 * GIB };
const LOOK_MS = 2_000;

/**
 * No core files; a file of at most 8 GiB (blocks of 512 bytes); 32 GiB of addresses; 4096 open files. The first argument
 * is the forwarder's command. The forwarder listens before the program starts, and ends with the sandbox.
 */
const LIMITS = `ulimit -c 0; ulimit -f 16777216; ulimit -v 33554432; ulimit -n 4096
if [ -n "$1" ]; then
  $1 &
  for look in $(seq 100); do
    grep -q ' 0100007F:${EGRESS_PORT.toString(16).toUpperCase().padStart(4, "0")} 00000000:0000 0A' /proc/net/tcp && break
    sleep 0.05
  done
fi
shift
exec "$@"`;

/** Variables of the broker that describe the machine's network and package index. No other variable is passed on. */
const PASSED =
  /^(PATH|LANG|LC_ALL|TZ|(HTTPS?|NO|ALL)_PROXY|SSL_CERT_(FILE|DIR)|UV_(DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|INDEX_STRATEGY|FIND_LINKS|INSECURE_HOST|NATIVE_TLS|SYSTEM_CERTS|HTTP_TIMEOUT|EXCLUDE_NEWER|CONFIG_FILE|INDEX_\w+_(USERNAME|PASSWORD)))$/i;

export type ConfinedOptions = {
  stateDir: string;
  onLine?: (line: string) => void;
  signal?: AbortSignal;
  /** Outgoing network policy of the team that proposed it; default: the one of a team for which nothing is set. */
  egressPolicy?: EgressPolicy;
  /** Files and folders of the host that the program reads, at their own paths. */
  reads: string[];
  /** The host's Python interpreter among `reads`, for forwarder and sandbox. Without it the program has no network. */
  python?: string;
  /** The folder that the program writes to, at its own path. The folder must exist. */
  writes: string;
  /** Maximum size of the written files in bytes; default `DISK.buildBytes`. */
  maxBytes?: number;
};

const cacheOf = (stateDir: string): string => path.join(stateDir, "proposals", "cache");

/** Runs a program to its end. Throws with its last lines when it fails, and when it takes too much of the disk. */
export async function runConfined(command: string[], options: ConfinedOptions): Promise<void> {
  const { stateDir, writes } = options;
  const cache = cacheOf(stateDir);
  await mkdir(cache, { recursive: true, mode: 0o700 });
  const scratch = await mkdtemp(path.join(stateDir, "proposals", ".run-"));
  const [root, tmp, home] = ["root", "tmp", "home"].map((name) => path.join(scratch, name)) as [string, string, string];
  for (const folder of [root, tmp, home]) await mkdir(folder);
  const kept = await bytesOf([cache]);
  const size = watchSize(
    [writes, tmp, home, cache],
    stateDir,
    kept + (options.maxBytes ?? DISK.buildBytes),
    options.maxBytes,
  );
  const signal = AbortSignal.any([size.exceeded, ...(options.signal === undefined ? [] : [options.signal])]);
  const { mode } = probeSandbox();
  let egress: Awaited<ReturnType<typeof openEgress>> | undefined;
  try {
    if (mode !== undefined && options.python !== undefined) egress = await openEgress(scratch, options.egressPolicy);
    const forward = egress === undefined ? "" : forwardCommand(options.python ?? "");
    const limited = ["sh", "-c", LIMITS, "limited", forward, ...command];
    if (mode?.asRoot) for (const folder of [writes, cache, tmp, home]) await own(folder, UID());
    const mounts = [
      { from: tmp, to: "/tmp", writable: true },
      { from: FORWARDER, to: FORWARDER_INSIDE },
      ...(egress === undefined ? [] : [{ from: egress.folder, to: SOCKETS_INSIDE }]),
      ...[...configured(), ...options.reads].filter(isOwnMount).map((at) => ({ from: at, to: at })),
      ...[home, cache, writes].map((at) => ({ from: at, to: at, writable: true })),
    ] satisfies Mount[];
    const [program = "sh", ...args] =
      mode === undefined
        ? limited
        : sandboxCommand({ mode, root, uid: UID(), mounts, python: options.python, command: limited });
    await runLines(program, args, {
      cwd: mode === undefined ? home : "/",
      onLine: options.onLine,
      signal,
      // The first process of a sandbox ignores SIGTERM. Its end ends all others.
      killSignal: "SIGKILL",
      env: {
        ...confinedEnvironment(process.env, { home, cache, tmp: mode === undefined ? tmp : "/tmp" }),
        ...(mode === undefined ? {} : proxyVariables()),
      },
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    if (size.exceeded.aborted) throw size.exceeded.reason;
    const message = error instanceof Error ? error.message : String(error);
    // Name the program, not the command that makes the sandbox.
    throw new Error(message.replace(/^\S+ \S+ (?=ended with)/, `${path.basename(command[0] ?? "")} `), {
      cause: error,
    });
  } finally {
    size.stop();
    egress?.close();
    await rm(scratch, { recursive: true, force: true });
  }
}

/** An egress proxy for one program. */
async function openEgress(
  scratch: string,
  policy: EgressPolicy = DEFAULT_EGRESS_POLICY,
): Promise<{ folder: string; close: () => void }> {
  const folder = path.join(scratch, "egress");
  await mkdir(folder, { mode: 0o755 });
  const proxy = createEgressProxy({
    rules: new AddressRules(),
    policy: () => policy,
    gpuServers: () => new Set(),
    indexes: packageIndexes(process.env),
    upstream: upstreamOf(process.env),
  });
  await listenInFolder(proxy.server, folder, EGRESS_SOCKET, 0o666);
  return { folder, close: proxy.close.bind(proxy) };
}

/** The environment of a confined program: the machine's index and proxies, and no secret of the installation. */
export function confinedEnvironment(
  given: NodeJS.ProcessEnv,
  { home, cache, tmp }: { home: string; cache: string; tmp: string },
): NodeJS.ProcessEnv {
  const passed = Object.entries(given).filter(([name]) => PASSED.test(name));
  const index = given.UV_DEFAULT_INDEX ?? given.PIP_INDEX_URL;
  return {
    ...(Object.fromEntries(passed) as NodeJS.ProcessEnv),
    ...{ HOME: home, TMPDIR: tmp, UV_CACHE_DIR: cache, UV_LINK_MODE: "copy" },
    ...(index === undefined ? {} : { UV_DEFAULT_INDEX: index }),
  };
}

/** Gives the files of a confined program back to the user of the installation. */
export async function takeBack(folder: string): Promise<void> {
  const uid = process.getuid?.() ?? 0;
  if (probeSandbox().mode?.asRoot) await runLines("chown", ["-R", "--no-dereference", `${uid}:${uid}`, folder]);
}

/** Empties the installer's cache above `maxBytes`. Call only while no confined program runs. */
export async function trimCache(stateDir: string, maxBytes: number = DISK.cacheBytes): Promise<void> {
  const cache = cacheOf(stateDir);
  if (existsSync(cache) && (await bytesOf([cache])) > maxBytes) await rm(cache, { recursive: true, force: true });
}

const UID = () => workspaceUid("proposals");

async function own(folder: string, uid: number): Promise<void> {
  if ((await stat(folder)).uid === uid) return;
  await lchown(folder, uid, uid);
  await chmod(folder, 0o700);
}

/** Files outside the system's folders that variables name. */
function configured(): string[] {
  const { SSL_CERT_FILE, SSL_CERT_DIR, UV_CONFIG_FILE, UV_FIND_LINKS } = process.env;
  return ["/etc/uv", SSL_CERT_FILE, SSL_CERT_DIR, UV_CONFIG_FILE, UV_FIND_LINKS].filter((at) => at !== undefined);
}

/** Whether a path needs its own mount: the system's folders are in every sandbox, read-only. */
function isOwnMount(at: string): boolean {
  return (
    path.isAbsolute(at) && existsSync(at) && !/^\/(usr\/(?!local$)|bin\/|lib|etc\/(ssl|pki|ca-certificates)\b)/.test(at)
  );
}

function watchSize(
  folders: string[],
  disk: string,
  mostBytes: number,
  maxBytes = DISK.buildBytes,
): { exceeded: AbortSignal; stop: () => void } {
  const exceeded = new AbortController();
  const ended = new AbortController();
  const watch = async () => {
    for (;;) {
      const free = await statfs(disk);
      if (free.bavail * free.bsize < DISK.freeBytes) {
        return exceeded.abort(new Error("The disk has less than 1 GiB left. Make room and check it again."));
      }
      // A failed measurement is repeated in the next turn of the loop.
      if ((await bytesOf(folders).catch(() => 0)) > mostBytes) {
        return exceeded.abort(new Error(`The build takes more than ${maxBytes / GIB} GiB. Propose fewer packages.`));
      }
      await sleep(LOOK_MS, undefined, { signal: ended.signal });
    }
  };
  // `stop` aborts the sleep, which rejects.
  watch().catch(() => undefined);
  return { exceeded: exceeded.signal, stop: () => ended.abort() };
}
