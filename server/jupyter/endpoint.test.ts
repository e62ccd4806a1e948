/** Answers and sockets of a hostile workspace. */
import { once } from "node:events";
import { mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { addressOf, baseUrlOf, connectToSocket, fetchOf, unixEndpoint } from "./endpoint.ts";

let folder: string;
let servers: Server[];

beforeEach(async () => {
  // Deeper than the path of a socket may be.
  folder = await mkdtemp(path.join(tmpdir(), `sluice-endpoint-${"deep".repeat(30)}-`));
  servers = [];
});
afterEach(async () => {
  for (const server of servers) server.closeAllConnections();
  for (const server of servers) server.close();
  await rm(folder, { recursive: true });
});

/** A server on a Unix socket in the folder, moved there from a short path. */
async function serve(name: string, answer: RequestListener): Promise<string> {
  const short = path.join(tmpdir(), `sluice-${process.pid}-${name}`);
  const server = createServer(answer).listen(short);
  servers.push(server);
  await once(server, "listening");
  const file = path.join(folder, name);
  await rename(short, file);
  return file;
}

async function ask(file: string, route = "/api/kernels"): Promise<Response> {
  const endpoint = unixEndpoint(file);
  return await fetchOf(endpoint)(`${baseUrlOf(endpoint)}${route}`, { headers: { authorization: "token secret" } });
}

it("asks a server on a socket, with a body and by any path", async () => {
  const file = await serve("own.sock", (asked, answer) => {
    const parts: Buffer[] = [];
    asked.on("data", (part: Buffer) => parts.push(part));
    asked.on("end", () =>
      answer.end(`${asked.method} ${asked.url} ${Buffer.concat(parts)} ${asked.headers.authorization}`),
    );
  });
  expect(await (await ask(file, "/a?b=c")).text()).toBe("GET /a?b=c  token secret");
  const endpoint = unixEndpoint(file);
  const asked = new Request(`${baseUrlOf(endpoint)}/post`, { method: "POST", body: "sent" });
  expect(await (await fetchOf(endpoint)(asked)).text()).toBe("POST /post sent undefined");
});

it("follows no link that a workspace has laid in the place of its socket", async () => {
  let asked = 0;
  const other = await serve("other.sock", (_, answer) => {
    asked += 1;
    answer.end("reached");
  });
  const laid = path.join(folder, "jupyter.sock");
  await symlink(other, laid);
  await expect(ask(laid)).rejects.toThrow(/ELOOP|not a socket/);
  await writeFile(path.join(folder, "file"), "text");
  await expect(ask(path.join(folder, "file"))).rejects.toThrow("not a socket");
  await expect(ask(path.join(folder, "missing"))).rejects.toThrow("ENOENT");
  expect(asked).toBe(0);
});

it("reads an answer without end to its limit only, and follows no redirect", async () => {
  let sent = 0;
  const file = await serve("endless.sock", (asked, answer) => {
    if (asked.url === "/elsewhere") return void answer.writeHead(302, { location: "http://169.254.169.254/" }).end();
    const more = () => {
      while (!answer.destroyed && answer.write(Buffer.alloc(65_536))) sent += 65_536;
      answer.once("drain", more);
    };
    more();
  });
  await expect(ask(file)).rejects.toThrow("larger than 4 MiB");
  expect(sent).toBeLessThan(16 * 1024 * 1024);
  expect((await ask(file, "/elsewhere")).status).toBe(302);
});

it("ends an answer that comes one byte at a time", async () => {
  const file = await serve("slow.sock", (_, answer) => {
    const timer = setInterval(() => answer.write("x"), 50);
    answer.once("close", () => clearInterval(timer));
  });
  const endpoint = unixEndpoint(file);
  const asked = fetchOf(endpoint)(`${baseUrlOf(endpoint)}/api/kernels`, { signal: AbortSignal.timeout(400) });
  await expect(asked).rejects.toThrow(/aborted/);
});

it("fails after an upgrade that was not asked for", { timeout: 5_000 }, async () => {
  const file = await serve("upgrading.sock", (asked) =>
    asked.socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n"),
  );
  await expect(ask(file)).rejects.toThrow();
});

it("sends a silent workspace 16 requests at a time, and other workspaces theirs", async () => {
  let asked = 0;
  const silent = await serve("silent.sock", () => {
    asked += 1;
  });
  const other = await serve("lively.sock", (_, answer) => answer.end("ok"));
  const endpoint = unixEndpoint(silent);
  const leave = new AbortController();
  const all = Array.from({ length: 40 }, async () =>
    fetchOf(endpoint)(`${baseUrlOf(endpoint)}/api/kernels`, { signal: leave.signal }).then(() => "answered", String),
  );
  await expect.poll(() => asked).toBe(16);
  expect(await (await ask(other)).text()).toBe("ok");
  leave.abort();
  const refused = (await Promise.all(all)).filter((text) => text.includes("the requests before"));
  expect(refused).toHaveLength(24);
  expect(asked).toBe(16);
});

it("leaves no descriptor open behind a connection", async () => {
  const file = await serve("counted.sock", (_, answer) => answer.end("ok"));
  for (let count = 0; count < 20; count++) await (await ask(file)).text();
  const { readdir, readlink } = await import("node:fs/promises");
  const open = await readdir("/proc/self/fd");
  const targets = await Promise.all(open.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")));
  expect(targets.filter((target) => target.includes("counted.sock"))).toEqual([]);
  connectToSocket(file).destroy();
});

it("names hosts and sockets", () => {
  expect(addressOf("http://10.0.0.5:8888")).toEqual({ host: "10.0.0.5", port: 8888 });
  expect(addressOf("http://[fd00::5]:8888")).toEqual({ host: "fd00::5", port: 8888 });
  expect(addressOf("unix:/run/a.sock")).toMatchObject({ socketPath: "/run/a.sock" });
});
