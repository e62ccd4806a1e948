/**
 * Runs the installer and the compiler for what somebody has proposed: in the sandbox that workspaces have, where this
 * machine allows one, with an environment, a home and a cache of its own, and within limits of size.
 */
import { existsSync } from "node:fs";
import { chmod, lchown, mkdir, mkdtemp, rm, stat, statfs } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { OPEN } from "#server/contracts/egress.ts";
import { AddressRules } from "#server/egress/addresses.ts";
import { EGRESS_SOCKET } from "#server/egress/egress-folder.ts";
import { createEgressProxy } from "#server/egress/egress-proxy.ts";
import { packageIndexes } from "#server/egress/package-indexes.ts";
import { upstreamOf } from "#server/egress/upstream.ts";
import { listenInFolder } from "#server/listen-in-folder.ts";
import { FORWARDER, FORWARDER_INSIDE, INSIDE, WAY_OUT_PORT, wayOutCommand, wayOutVariables } from "./network.ts";
import { runLines } from "./processes.ts";
import { type Mount, probeSandbox, sandboxCommand, workspaceUid } from "./sandbox.ts";

const GIB = 1024 ** 3;

/** What one proposal may take on disk, what must stay free beside it, and what the cache keeps between proposals. */
export const DISK = { buildBytes: 20 * GIB, freeBytes: GIB, cacheBytes: 5 * GIB };
const LOOK_MS = 2_000;

/**
 * No core files; a file of at most 8 GiB (blocks of 512 bytes); 32 GiB of addresses; 4096 open files. The first argument
 * is the command of the way out: it listens before the program starts, runs beside it and ends with its sandbox.
 */
const LIMITS = `ulimit -c 0; ulimit -f 16777216; ulimit -v 33554432; ulimit -n 4096
if [ -n "$1" ]; then
  $1 &
  for look in $(seq 100); do
    grep -q ' 0100007F:${WAY_OUT_PORT.toString(16).toUpperCase().padStart(4, "0")} 00000000:0000 0A' /proc/net/tcp && break
    sleep 0.05
  done
fi
shift
exec "$@"`;

/** What the broker's environment tells about the machine's network and package index, and nothing else. */
const PASSED =
  /^(PATH|LANG|LC_ALL|TZ|(HTTPS?|NO|ALL)_PROXY|SSL_CERT_(FILE|DIR)|UV_(DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|INDEX_STRATEGY|FIND_LINKS|INSECURE_HOST|NATIVE_TLS|SYSTEM_CERTS|HTTP_TIMEOUT|EXCLUDE_NEWER|CONFIG_FILE|INDEX_\w+_(USERNAME|PASSWORD)))$/i;

export type ConfinedOptions = {
  stateDir: string;
  onLine?: (line: string) => void;
  signal?: AbortSignal;
  /** Files and folders of the host that it sees, at their own paths. */
  reads: string[];
  /** A Python interpreter among them: with it the program reaches the internet, and nothing of this host. */
  python?: string;
  /** The folder that it changes, at its own path; it exists. */
  writes: string;
  /** What that may grow to; `DISK.buildBytes`. */
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
  const wayOut = mode === undefined || options.python === undefined ? undefined : await openWayOut(scratch);
  try {
    const forward = wayOut === undefined ? "" : wayOutCommand(options.python ?? "");
    const limited = ["sh", "-c", LIMITS, "limited", forward, ...command];
    if (mode?.asRoot) for (const folder of [writes, cache, tmp, home]) await own(folder, UID());
    const mounts = [
      { from: tmp, to: "/tmp", writable: true },
      { from: FORWARDER, to: FORWARDER_INSIDE },
      ...(wayOut === undefined ? [] : [{ from: wayOut.folder, to: INSIDE.egress }]),
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
      // The first process of a sandbox ignores SIGTERM; with it end all others.
      killSignal: "SIGKILL",
      env: {
        ...confinedEnvironment(process.env, { home, cache, tmp: mode === undefined ? tmp : "/tmp" }),
        ...(mode === undefined ? {} : wayOutVariables()),
      },
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    if (size.exceeded.aborted) throw size.exceeded.reason;
    const message = error instanceof Error ? error.message : String(error);
    // Of the program, not of what makes its sandbox.
    throw new Error(message.replace(/^\S+ \S+ (?=ended with)/, `${path.basename(command[0] ?? "")} `), {
      cause: error,
    });
  } finally {
    size.stop();
    wayOut?.close();
    await rm(scratch, { recursive: true, force: true });
  }
}

/** A way out for one program, by the rules of a team without a policy of its own. */
async function openWayOut(scratch: string): Promise<{ folder: string; close: () => void }> {
  const folder = path.join(scratch, "egress");
  await mkdir(folder, { mode: 0o755 });
  const proxy = createEgressProxy({
    rules: new AddressRules(),
    policy: () => OPEN,
    gpuServers: () => new Set(),
    indexes: packageIndexes(process.env),
    upstream: upstreamOf(process.env),
  });
  await listenInFolder(proxy.server, folder, EGRESS_SOCKET, 0o666);
  return { folder, close: proxy.close.bind(proxy) };
}

/** The environment of such a program: the machine's index and proxies, no secret of the installation. */
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

/** What such a program has made becomes the installation's own again. */
export async function takeBack(folder: string): Promise<void> {
  const uid = process.getuid?.() ?? 0;
  if (probeSandbox().mode?.asRoot) await runLines("chown", ["-R", "--no-dereference", `${uid}:${uid}`, folder]);
}

/** Empties the installer's cache when it has grown too large; call it when no such program runs. */
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

/** Files outside the system's folders that the environment names. */
function configured(): string[] {
  const { SSL_CERT_FILE, SSL_CERT_DIR, UV_CONFIG_FILE, UV_FIND_LINKS } = process.env;
  return ["/etc/uv", SSL_CERT_FILE, SSL_CERT_DIR, UV_CONFIG_FILE, UV_FIND_LINKS].filter((at) => at !== undefined);
}

/** The system's folders are in every sandbox, and nothing can be laid into them. */
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
      // What cannot be measured now is measured at the next look.
      if ((await bytesOf(folders).catch(() => 0)) > mostBytes) {
        return exceeded.abort(new Error(`It takes more than ${maxBytes / GIB} GiB. Propose fewer packages.`));
      }
      await sleep(LOOK_MS, undefined, { signal: ended.signal });
    }
  };
  // It ends by being stopped.
  watch().catch(() => undefined);
  return { exceeded: exceeded.signal, stop: () => ended.abort() };
}

async function bytesOf(folders: string[]): Promise<number> {
  // Files come and go while it looks.
  const lines = await runLines("sh", ["-c", 'du -sk "$@" 2>/dev/null || true', "du", ...folders]);
  return lines.reduce((sum, line) => sum + Number.parseInt(line, 10) * 1024, 0);
}
