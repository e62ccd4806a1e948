/** Programs without proxy settings in a sandbox, with an egress proxy outside. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import { createEgressProxy, type EgressProxy } from "#server/egress/egress-proxy.ts";
import { LoopbackIsPublic } from "#server/egress/testing.ts";
import { listenInFolder } from "#server/listen-in-folder.ts";
import type { RefusedConnection } from "#server/services/workspace/record-refusals.ts";
import { EGRESS_PORT, FORWARDER, FORWARDER_INSIDE, forwardCommand, SOCKETS_INSIDE } from "./network.ts";
import { probeSandbox, sandboxCommand, workspaceUid } from "./sandbox.ts";

const { mode } = probeSandbox();
const folder = mkdtempSync(path.join(tmpdir(), "sluice-forward-"));
const sockets = path.join(folder, "sockets");
let web: Server;
let port: number;
let proxy: EgressProxy;
let policy: EgressPolicy;
let refusals: RefusedConnection[];

/** Names of this test. Other names have no address. */
const NAMES: Record<string, string> = {
  "files.test": "127.0.0.1",
  "inside.test": "10.1.2.3",
  "meta.test": "169.254.169.254",
};
const hostAddresses = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .filter(({ family, internal }) => family === "IPv4" && !internal)
  .map(({ address }) => address);

beforeAll(async () => {
  chmodSync(folder, 0o755);
  mkdirSync(sockets);
  web = createServer((socket) => {
    socket.on("data", (data) => socket.end(`heard ${data.toString()}`)).on("error", () => undefined);
  }).listen(0, "0.0.0.0");
  await once(web, "listening");
  port = (web.address() as AddressInfo).port;
  proxy = createEgressProxy({
    rules: new LoopbackIsPublic(),
    policy: () => policy,
    gpuServers: () => new Set(),
    indexes: new Set(),
    onRefused: (refusal) => refusals.push(refusal),
    resolve: async (host) => {
      const address = NAMES[host] ?? (/^[0-9.]+$/.test(host) ? host : undefined);
      if (address === undefined) throw new Error("not found");
      return [{ address, family: 4 }];
    },
  });
  await listenInFolder(proxy.server, sockets, "egress.sock", 0o666);
});
beforeEach(() => {
  policy = { mode: "all", allow: [] };
  refusals = [];
});
afterAll(() => {
  proxy.close();
  web.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Connects to each host as any program does, and prints what comes back. */
const PROGRAM = `import socket, sys
def result(host):
    try:
        with socket.create_connection((host, int(sys.argv[1])), 20) as link:
            link.sendall(b"a word")
            return link.recv(100).decode()
    except OSError as error:
        return type(error).__name__
for host in sys.argv[2:]:
    print(host, result(host), sep="=", flush=True)`;

async function inSandbox(command: string[]): Promise<string[]> {
  if (mode === undefined) throw new Error("no sandbox");
  const start = `${forwardCommand("python3")} &
for look in $(seq 400); do
  grep -q ' 0100007F:${EGRESS_PORT.toString(16).toUpperCase().padStart(4, "0")} 00000000:0000 0A' /proc/net/tcp && break
  sleep 0.05
done
exec "$@"`;
  const root = mkdtempSync(path.join(folder, "root-"));
  const mounts = [
    { from: FORWARDER, to: FORWARDER_INSIDE },
    { from: sockets, to: SOCKETS_INSIDE },
  ];
  const sandboxed = sandboxCommand({
    ...{ mode, root, mounts, uid: workspaceUid("forward") },
    command: ["sh", "-c", start, "start", ...command],
  });
  const [program = "", ...args] = sandboxed;
  const child = spawn(program, args, { cwd: "/", stdio: ["ignore", "pipe", "inherit"], timeout: 60_000 });
  return (await text(child.stdout)).trim().split("\n");
}

const connect = async (...hosts: string[]) => await inSandbox(["python3", "-c", PROGRAM, String(port), ...hosts]);

describe.runIf(mode !== undefined)("a program without proxy settings", () => {
  it("connects to names and addresses that the policy allows", async () => {
    expect(await connect("files.test", "FILES.test.")).toEqual(["files.test=heard a word", "FILES.test.=heard a word"]);
    policy = { mode: "list", allow: ["files.test"] };
    expect(await connect("files.test")).toEqual(["files.test=heard a word"]);
    expect(refusals).toEqual([]);
  });

  it("learns that a name has no address", async () => {
    expect(await connect("unknown.test")).toEqual(["unknown.test=gaierror"]);
  });

  it.each(["all", "list", "none"] as const)(
    "is reset at closed destinations in mode %s, and the rule is recorded",
    async (given) => {
      policy = { mode: given, allow: given === "list" ? ["*.test", "0.0.0.0/0"] : [] };
      const closed = ["meta.test", "169.254.169.254", "240.0.0.77", ...hostAddresses];
      const hosts = given === "all" ? [...closed, "inside.test", "10.1.2.3"] : closed;
      expect(await connect(...hosts)).toEqual(hosts.map((host) => `${host}=ConnectionResetError`));
      expect(refusals.map(({ host, port: to }) => ({ host, port: to }))).toEqual(hosts.map((host) => ({ host, port })));
      const rule = given === "none" ? /policy of this team is: none/ : /closed|private address/;
      for (const { reason } of refusals) expect(reason).toMatch(rule);
    },
  );

  it("looks no name up outside of a list of names", async () => {
    policy = { mode: "list", allow: ["files.test"] };
    expect(await connect("unknown.test")).toEqual(["unknown.test=ConnectionResetError"]);
    expect(refusals).toMatchObject([
      { host: "unknown.test", reason: expect.stringMatching(/not on the list/) as string },
    ]);
  });

  it("gets a name's placeholder from any DNS server, its own address for its own name, and no other record", async () => {
    const ask = `import socket, struct
def ask(server, kind, name="files.test"):
    question = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\\0"
    query = b"\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + question + struct.pack("!HH", kind, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.settimeout(20)
        link.connect((server, 53))
        link.send(query)
        answer = link.recv(512)
    return answer[3] & 15, answer[7], answer[-4:-3].hex()
for server, kind in (("127.0.0.1", 1), ("192.0.2.53", 1), ("127.0.0.1", 28), ("127.0.0.1", 16)):
    print(*ask(server, kind)[: 3 if kind == 1 else 2])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
    for wrong in (b"", b"x" * 12, b"\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"\\x3f", b"\\xff" * 600):
        link.sendto(wrong, ("127.0.0.1", 53))
print(*ask("127.0.0.1", 1))
print(*ask("127.0.0.1", 1, socket.gethostname()))`;
    expect(await inSandbox(["python3", "-c", ask])).toEqual(["0 1 f0", "0 1 f0", "0 0", "0 0", "0 1 f0", "0 1 7f"]);
  });
});
