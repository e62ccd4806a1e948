/** Answers of hostile servers: without end, slow, and with a redirect to the cloud's metadata. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, get, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer, get as getSecurely, type RequestOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BoundedAgent, boundedFetch } from "./bounded-answer.ts";

const LIMITS = { maxBytes: 64 * 1024, timeoutMs: 30_000 };
const SHORT = { ...LIMITS, timeoutMs: 500 };
const METADATA = "http://169.254.169.254/latest/meta-data/";

const BOMB = gzipSync(Buffer.alloc(32 * 1024 * 1024));

let server: Server;
let origin: string;
let sent: number;

const answers: Record<string, (answer: ServerResponse) => void> = {
  "/short": (answer) => answer.end('{"short":true}'),
  "/empty": (answer) => answer.writeHead(204).end(),
  "/elsewhere": (answer) => answer.writeHead(302, { location: METADATA }).end(),
  "/compressed": (answer) => {
    answer.writeHead(200, { "content-encoding": "gzip" }).end(BOMB);
  },
  "/endless": (answer) => {
    const more = () => {
      while (!answer.destroyed && answer.write(Buffer.alloc(65_536))) sent += 65_536;
      answer.once("drain", more);
    };
    more();
  },
  "/slow": (answer) => {
    const timer = setInterval(() => answer.write("x"), 50);
    answer.once("close", () => clearInterval(timer));
  },
  "/silent": () => undefined,
};

beforeEach(async () => {
  sent = 0;
  server = createServer((request, answer) => answers[request.url ?? ""]?.(answer));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

describe("a fetch within limits", () => {
  const ask = async (route: string, limits = LIMITS) => await boundedFetch(limits)(`${origin}${route}`);

  it("gives short answers and answers without a body", async () => {
    expect(await (await ask("/short")).json()).toEqual({ short: true });
    expect((await ask("/empty")).status).toBe(204);
  });

  it("ends an answer without end", async () => {
    await expect(ask("/endless")).rejects.toThrow("larger than 64 KiB");
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  });

  it("counts the bytes after decompression", async () => {
    await expect(ask("/compressed")).rejects.toThrow("larger than 64 KiB");
  });

  it.each(["/slow", "/silent"])("ends the answer %s in time", async (route) => {
    const began = Date.now();
    await expect(ask(route, SHORT)).rejects.toThrow(/timeout/);
    expect(Date.now() - began).toBeLessThan(10_000);
  });

  it("follows no redirect", async () => {
    const answer = await ask("/elsewhere");
    expect(answer.status).toBe(302);
    expect(answer.headers.get("location")).toBe(METADATA);
  });
});

describe("a library's agent within limits", () => {
  /** As a library reads: everything, however much that is. */
  const ask = async (route: string, limits = LIMITS): Promise<string> => {
    const asked = get(`${origin}${route}`, { agent: new BoundedAgent("http:", limits) });
    const [answer] = (await once(asked, "response")) as [AsyncIterable<Buffer>];
    const parts: Buffer[] = [];
    for await (const part of answer) parts.push(part);
    return Buffer.concat(parts).toString();
  };

  it("gives short answers", async () => {
    expect(await ask("/short")).toBe('{"short":true}');
  });

  it("asks by TLS, and believes the given authorities alone", async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "sluice-bounded-"));
    const [key, cert] = [path.join(folder, "key.pem"), path.join(folder, "cert.pem")] as const;
    const made = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    const names = ["-subj", "/CN=provider", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert];
    await promisify(execFile)("openssl", ["req", ...made, ...names]);
    const secret = { key: await readFile(key), cert: await readFile(cert) };
    const secure = createSecureServer(secret, (request, answer) => answers[request.url ?? ""]?.(answer));
    await once(secure.listen(0, "localhost"), "listening");
    const { port } = secure.address() as AddressInfo;
    const agent = new BoundedAgent("https:", LIMITS);
    const askSecurely = async (route: string, options: RequestOptions): Promise<number> => {
      const asked = getSecurely(`https://localhost:${port}${route}`, { agent, ...options });
      const [answer] = (await once(asked, "response")) as [AsyncIterable<Buffer>];
      let size = 0;
      for await (const part of answer) size += part.length;
      return size;
    };
    expect(await askSecurely("/short", { ca: secret.cert })).toBe(14);
    await expect(askSecurely("/short", {})).rejects.toThrow("self-signed");
    await expect(askSecurely("/endless", { ca: secret.cert })).rejects.toThrow();
    expect(sent).toBeLessThan(16 * 1024 * 1024);
    secure.closeAllConnections();
    secure.close();
    await rm(folder, { recursive: true });
  });

  it("ends an answer without end", async () => {
    await expect(ask("/endless")).rejects.toThrow();
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  });

  it.each(["/slow", "/silent"])("ends the answer %s in time", async (route) => {
    const began = Date.now();
    await expect(ask(route, SHORT)).rejects.toThrow();
    expect(Date.now() - began).toBeLessThan(10_000);
  });
});
