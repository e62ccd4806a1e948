/** The egress proxy, with servers of this test at addresses that the rules take for other hosts. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, createServer as createHttpServer, type IncomingMessage, request, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import type { RefusedConnection } from "#server/services/workspace/record-refusals.ts";
import { AddressRules, surroundingsWith } from "./addresses.ts";
import { createEgressProxy, type EgressProxy, MOST_CONNECTIONS } from "./egress-proxy.ts";
import { judge } from "./judge.ts";
import { packageIndexes } from "./package-indexes.ts";
import { LoopbackIsPublic } from "./testing.ts";
import { upstreamOf } from "./upstream.ts";

let folder: string;
let socketPath: string;
let web: Server;
let port: number;
let proxy: EgressProxy;
let policy: EgressPolicy;
let gpuServers: Set<string>;
let refusals: RefusedConnection[];
/** Names of this test. Other names have no address. */
let names: Record<string, string[]>;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-egress-"));
  socketPath = path.join(folder, "egress.sock");
  web = createHttpServer((asked, answer) => {
    const seen = { url: asked.url, headers: asked.headers, method: asked.method };
    void text(asked).then((body) => answer.end(JSON.stringify({ ...seen, body })));
  });
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
  port = (web.address() as AddressInfo).port;
  proxy = createEgressProxy({
    rules: new LoopbackIsPublic(() => ({
      own: ["192.0.2.2"],
      gateways: ["192.0.2.1"],
      networks: ["198.51.100.7/24", "2001:db8:5::7/64"],
    })),
    policy: () => policy,
    gpuServers: () => gpuServers,
    indexes: new Set(["mirror.test:80"]),
    onRefused: (refusal) => refusals.push(refusal),
    resolve: async (host) => {
      const found = names[host] ?? (/^[0-9.:a-f]+$/.test(host) ? [host] : undefined);
      if (found === undefined) throw new Error("not found");
      return found.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    },
  });
  proxy.server.listen(socketPath);
  await once(proxy.server, "listening");
});
beforeEach(() => {
  policy = { mode: "all", allow: [] };
  gpuServers = new Set();
  refusals = [];
  names = { "pypi.test": ["127.0.0.1"], "inside.test": ["10.1.2.3"], "both.test": ["10.1.2.3", "127.0.0.1"] };
});
afterAll(async () => {
  proxy.close();
  web.close();
  await rm(folder, { recursive: true });
});

type Answer = { status: number; reason: string; body: string; socket?: Socket };

async function get(url: string, headers: Record<string, string> = {}, body = ""): Promise<Answer> {
  const asked = request({ socketPath, path: url, method: body === "" ? "GET" : "POST", headers, agent: new Agent() });
  asked.end(body);
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  return { status: answer.statusCode ?? 0, reason: answer.statusMessage ?? "", body: await text(answer) };
}

/** Opens a tunnel and returns the answer to a request for `/through`. */
async function tunnel(target: string): Promise<Answer> {
  const asked = request({ socketPath, path: target, method: "CONNECT", agent: false });
  asked.end();
  const [answer, socket, head] = (await once(asked, "connect")) as [IncomingMessage, Socket, Buffer];
  if (answer.statusCode !== 200) {
    const body = `${head.toString()}${await text(socket)}`;
    return { status: answer.statusCode ?? 0, reason: answer.statusMessage ?? "", body };
  }
  socket.write(`GET /through HTTP/1.1\r\nhost: ${target}\r\nconnection: close\r\n\r\n`);
  return { status: 200, reason: "", body: await text(socket) };
}

/** The reply of SOCKS5 to a request for a host name, and what comes through. */
async function socks(host: string, to: number): Promise<{ reply: number; body: string }> {
  const socket = connect(socketPath);
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.write(Buffer.from([5, 1, 0]));
  await once(socket, "data");
  const name = Buffer.from(host);
  const request = Buffer.from([5, 1, 0, 3, name.length, ...name, to >> 8, to & 255]);
  // In two pieces, as a network may bring it.
  socket.write(request.subarray(0, 7));
  await new Promise((resolve) => setTimeout(resolve, 20));
  socket.write(request.subarray(7));
  await once(socket, "data");
  const reply = chunks[1]?.[1] ?? -1;
  if (reply === 0) socket.write(`GET /socks HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
  await once(socket, "close");
  return { reply, body: Buffer.concat(chunks.slice(1)).subarray(10).toString() };
}

describe("an allowed connection", () => {
  it("carries plain requests, without headers for a proxy", async () => {
    const answer = await get(`http://pypi.test:${port}/simple/?a=b`, {
      "proxy-connection": "keep-alive",
      "proxy-authorization": "Basic c2VjcmV0",
      connection: "x-hop",
      "x-hop": "1",
      "x-kept": "2",
    });
    expect(answer.status).toBe(200);
    const seen = JSON.parse(answer.body) as { url: string; headers: Record<string, string | undefined> };
    expect(seen).toMatchObject({ url: "/simple/?a=b", headers: { host: `pypi.test:${port}`, "x-kept": "2" } });
    for (const name of ["proxy-connection", "proxy-authorization", "x-hop"]) expect(seen.headers[name]).toBeUndefined();
    expect(JSON.parse((await get(`http://pypi.test:${port}/`, {}, "sent")).body)).toMatchObject({
      method: "POST",
      body: "sent",
    });
  });

  it("carries tunnels and SOCKS5", async () => {
    expect((await tunnel(`pypi.test:${port}`)).body).toContain("/through");
    expect(await socks("pypi.test", port)).toMatchObject({
      reply: 0,
      body: expect.stringContaining("/socks") as string,
    });
  });

  it("uses the open addresses of a name", async () => {
    expect((await tunnel(`both.test:${port}`)).status).toBe(200);
  });
});

describe("rejects a connection to", () => {
  it.each([
    ["inside.test", "all", [], /private address/],
    ["10.1.2.3", "all", ["*.test"], /private address/],
    ["169.254.169.254", "all", ["169.254.0.0/16"], /closed/],
    ["[::ffff:169.254.169.254]", "all", ["::/0"], /closed/],
    ["[fe80::1]", "all", ["fe80::/10"], /closed/],
    ["192.0.2.2", "all", ["192.0.2.0/24"], /closed/],
    ["192.0.2.1", "all", ["192.0.2.0/24"], /closed/],
    ["198.51.100.9", "all", [], /private address/],
    ["[2001:db8:5::9]", "all", ["*.test"], /private address/],
    ["[64:ff9b::7f00:1]", "all", [], /closed/],
    ["pypi.test", "list", ["files.test"], /not on the list/],
    ["pypi.test", "none", ["pypi.test"], /policy of this team is: none/],
  ] as const)("%s with %s %o", async (host, mode, allow, reason) => {
    policy = { mode, allow: [...allow] };
    for (const answer of [await tunnel(`${host}:${port}`), await get(`http://${host}:${port}/`)]) {
      expect(answer.status).toBe(403);
      expect(answer.body).toMatch(reason);
    }
    expect(refusals.length).toBe(2);
    expect(refusals[0]).toMatchObject({ port, reason: expect.stringMatching(reason) as string });
    expect((await socks(host.replace(/[[\]]/g, ""), port)).reply).toBe(2);
  });

  it.each(["127.1", "0x7f000001", "2130706433", "localhost.", "127.0.0.1.", "a b", "", "x".repeat(300)])(
    "the spelling %o of this machine",
    async (host) => {
      names.localhost = ["::1"];
      const answer = await tunnel(`${host}:${port}`).catch(() => ({ status: 400 }));
      expect([400, 403, 502]).toContain(answer.status);
    },
  );

  it("a name that leads elsewhere at the second look", async () => {
    let looks = 0;
    Object.defineProperty(names, "rebind.test", { get: () => (++looks === 1 ? ["203.0.113.9"] : ["127.0.0.1"]) });
    policy = { mode: "list", allow: ["10.0.0.0/8", "rebind.test"] };
    // The connection goes to the judged address, where no server listens.
    const asked = tunnel(`rebind.test:${port}`);
    await expect(
      Promise.race([asked, new Promise((resolve) => setTimeout(resolve, 300, "no answer"))]),
    ).resolves.not.toMatchObject({
      status: 200,
    });
    expect(looks).toBe(1);
  });

  it("an address that became this host's after it was judged", async () => {
    class JudgedBefore extends AddressRules {
      override reach(address: string) {
        return address === "127.0.0.1" ? "public" : super.reach(address);
      }
    }
    const later = createEgressProxy({
      rules: new JudgedBefore(() => ({ own: [], gateways: [], networks: [] })),
      policy: () => policy,
      gpuServers: () => gpuServers,
      indexes: new Set(),
      onRefused: (refusal) => refusals.push(refusal),
    });
    const usual = socketPath;
    socketPath = path.join(folder, "later.sock");
    later.server.listen(socketPath);
    await once(later.server, "listening");
    try {
      for (const answer of [await tunnel(`127.0.0.1:${port}`), await get(`http://127.0.0.1:${port}/`)]) {
        expect(answer).toMatchObject({ status: 403, body: expect.stringMatching(/closed/) as string });
      }
      expect((await socks("127.0.0.1", port)).reply).toBe(2);
      expect(refusals).toHaveLength(3);
      gpuServers.add(`127.0.0.1:${port}`);
      expect((await tunnel(`127.0.0.1:${port}`)).status).toBe(200);
    } finally {
      socketPath = usual;
      later.close();
    }
  });
});

it("opens what the list names, and GPU servers in every mode", async () => {
  policy = { mode: "list", allow: ["*.test"] };
  expect((await tunnel(`pypi.test:${port}`)).status).toBe(200);
  policy = { mode: "none", allow: [] };
  gpuServers.add(`127.0.0.1:${port}`);
  expect((await tunnel(`127.0.0.1:${port}`)).status).toBe(200);
  expect((await tunnel(`127.0.0.1:${port + 1}`)).status).toBe(403);
});

it("opens the operator's package indexes at private addresses in mode all", async () => {
  expect(
    packageIndexes(
      {
        NODE_ENV: "test",
        PIP_INDEX_URL: "http://user:word@10.0.0.5:3141/root/",
        UV_INDEX: "own=https://pip.test/simple",
      },
      "[global]\nextra-index-url = https://a.test/x http://b.test:8080/\ncert = /x\n",
    ),
  ).toEqual(new Set(["10.0.0.5:3141", "pip.test:443", "a.test:443", "b.test:8080"]));
  names["mirror.test"] = ["10.1.2.3"];
  const judged = async (mode: EgressPolicy["mode"], port: number) =>
    await judge({
      destination: { host: "mirror.test", port },
      policy: { mode, allow: [] },
      rules: new AddressRules(() => ({ own: [], gateways: [], networks: [] })),
      gpuServers,
      indexes: new Set(["mirror.test:80"]),
      resolve: async () => [{ address: "10.1.2.3", family: 4 }],
    });
  expect(await judged("all", 80)).toHaveProperty("addresses");
  expect(await judged("all", 81)).toHaveProperty("refused");
  expect(await judged("list", 80)).toHaveProperty("refused");
  expect(await judged("none", 80)).toHaveProperty("refused");
});

it("keeps a body a body, whatever headers the client calls hop-by-hop", async () => {
  const body = "GET http://169.254.169.254/ HTTP/1.1\r\nhost: a\r\n\r\n";
  const socket = connect(socketPath);
  const framing = `connection: content-length, host\r\ncontent-length: ${body.length}`;
  socket.write(`GET http://pypi.test:${port}/one HTTP/1.1\r\nhost: pypi.test\r\n${framing}\r\n\r\n${body}`);
  const answer = await text(socket);
  expect(answer.match(/HTTP\/1\.1 200/g)).toHaveLength(1);
  expect(JSON.parse(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1))).toMatchObject({
    url: "/one",
    body,
  });
});

it("answers one request for each connection, and frees the place of a refused client", async () => {
  const socket = connect(socketPath);
  const one = `GET http://pypi.test:${port}/pipelined HTTP/1.1\r\nhost: pypi.test\r\n\r\n`;
  socket.on("error", () => undefined).write(one.repeat(50));
  const answer = await text(socket).catch(() => "");
  expect((answer.match(/HTTP\/1\.1 200/g) ?? []).length).toBeLessThanOrEqual(1);
  policy = { mode: "none", allow: [] };
  const early = connect(socketPath).on("error", () => undefined);
  early.write(Buffer.from([5, 1, 0, 5, 1, 0, 1, 10, 1, 2, 3, 0, 80, ...Buffer.alloc(4096)]));
  await once(early, "data");
  const open = async () => await new Promise((resolve) => proxy.server.getConnections((_, count) => resolve(count)));
  await expect.poll(open, { timeout: 8_000 }).toBe(0);
});

it("limits the connections and header bytes of one workspace", async () => {
  const held: Socket[] = [];
  for (let count = 0; count < MOST_CONNECTIONS + 20; count++)
    held.push(connect(socketPath).on("error", () => undefined));
  const open = async () => await new Promise((resolve) => proxy.server.getConnections((_, count) => resolve(count)));
  await expect.poll(open, { timeout: 8_000 }).toBe(MOST_CONNECTIONS);
  // The rest is not taken later either.
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(await open()).toBe(MOST_CONNECTIONS);
  for (const socket of held) socket.destroy();
  await expect.poll(open, { timeout: 8_000 }).toBe(0);
  const long = await get(`http://pypi.test:${port}/`, { "x-long": "a".repeat(100_000) }).catch(() => undefined);
  expect(long?.status ?? 431).toBe(431);
});

it("closes connections without a valid opening", async () => {
  for (const bytes of ["\u0004\u0001", "\u0005\u00ff", "GET / HTTP/1.1\r\n\r\n", "CONNECT nowhere HTTP/1.1\r\n\r\n"]) {
    const socket = connect(socketPath);
    socket.end(Buffer.from(bytes, "latin1"));
    socket.resume().on("error", () => undefined);
    // `once` of node:events rejects at a reset, which is as good an end.
    await new Promise((resolve) => socket.once("close", resolve));
  }
});

describe("behind a proxy of the host", () => {
  let outer: Server;
  let targets: string[];
  let through: EgressProxy;

  beforeAll(async () => {
    outer = createHttpServer((asked, answer) => {
      targets.push(`${asked.method} ${asked.url} ${asked.headers["proxy-authorization"]}`);
      answer.end("from outside");
    });
    outer.on("connect", (asked, socket: Socket) => {
      targets.push(`CONNECT ${asked.url} ${asked.headers["proxy-authorization"]}`);
      socket.write("HTTP/1.1 200 ok\r\n\r\n");
      socket.once("data", () => socket.end("from outside"));
    });
    outer.listen(0, "127.0.0.1");
    await once(outer, "listening");
    const at = `http://user:word@127.0.0.1:${(outer.address() as AddressInfo).port}`;
    through = createEgressProxy({
      rules: new AddressRules(() => ({ own: [], gateways: [], networks: [] })),
      policy: () => policy,
      gpuServers: () => gpuServers,
      indexes: new Set(),
      upstream: upstreamOf({ NODE_ENV: "test", HTTPS_PROXY: at, NO_PROXY: "direct.test" }),
      resolve: async (host) => {
        const found = names[host];
        if (found === undefined) throw new Error("not found");
        return found.map((address) => ({ address, family: 4 }));
      },
    });
    proxy.server.close();
    socketPath = path.join(folder, "through.sock");
    through.server.listen(socketPath);
    await once(through.server, "listening");
  });
  beforeEach(() => {
    targets = [];
  });
  afterAll(() => {
    through.close();
    outer.close();
  });

  it("goes through it, with its credentials, and lets it resolve names", async () => {
    expect(await tunnel("known.outside.test:443")).toMatchObject({ status: 200, body: "from outside" });
    expect((await get("http://known.outside.test/a")).body).toBe("from outside");
    const credentials = `Basic ${Buffer.from("user:word").toString("base64")}`;
    expect(targets).toEqual([
      `CONNECT known.outside.test:443 ${credentials}`,
      `GET http://known.outside.test/a ${credentials}`,
    ]);
  });

  it.each([
    ...["inside.test:443", "10.1.2.3:443", "intranet:443", "direct.test:443", "127.1:443", "0x7f.1:443", "10.1:443"],
    ...["intranet.:443", "direct.test.:443", "2130706433:443"],
  ])("refuses %s all the same", async (target) => {
    expect((await tunnel(target)).status).toBeGreaterThanOrEqual(400);
    expect(targets).toEqual([]);
  });
});

it("takes the networks of this host's interfaces for private, whatever their addresses, and keeps others public", () => {
  const at = { netmask: "", mac: "", internal: false };
  const interfaces = {
    lo: [{ ...at, address: "127.0.0.1", family: "IPv4" as const, cidr: "127.0.0.1/8", internal: true }],
    eth0: [
      { ...at, address: "198.51.100.7", family: "IPv4" as const, cidr: "198.51.100.7/24" },
      { ...at, address: "2001:db8:5::7", family: "IPv6" as const, cidr: "2001:db8:5::7/64", scopeid: 0 },
    ],
  };
  const rules = new AddressRules(() => surroundingsWith(interfaces, ["198.51.100.1"]));
  const reaches = ["198.51.100.9", "2001:db8:5::9", "198.51.100.7", "198.51.100.1", "203.0.113.9", "2001:db8:6::9"];
  expect(reaches.map((address) => rules.reach(address))).toEqual([
    ...["private", "private", "closed", "closed", "public", "public"],
  ]);
});
