import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import type { Database } from "#server/db/client.ts";
import type { Live } from "#server/live.ts";
import type { Logger } from "#server/log.ts";
import { Connections } from "./connections.ts";
import { secretsFrom, setCookie } from "./cookies.ts";
import { Frames } from "./frames.ts";
import { originOf, workspaceOfHost } from "./hosts.ts";
import { withoutToken } from "./proxy-headers.ts";

const id = `ws-${"a".repeat(26)}`;
const address = { host: "work.example.org", url: "https://work.example.org" };

describe("hostnames", () => {
  it("name a workspace by their first label alone", () => {
    expect(workspaceOfHost(`${id}.work.example.org`, address)).toBe(id);
    expect(workspaceOfHost(`${id.toUpperCase()}.WORK.example.org:443`, address)).toBe(id);
    for (const host of [
      undefined,
      "",
      "work.example.org",
      `x.${id}.work.example.org`,
      `${id}.work.example.org.evil.org`,
      `${id}work.example.org`,
    ]) {
      expect(workspaceOfHost(host, address)).toBeUndefined();
    }
    expect(originOf(id, address)).toBe(`https://${id}.work.example.org`);
  });
});

describe("the cookie", () => {
  it("has the prefix that no other host can set, over HTTPS", () => {
    const secret = "s".repeat(43);
    expect(setCookie(secret, true)).toBe(`__Host-sluice-workspace=${secret}; Path=/; HttpOnly; SameSite=Lax; Secure`);
    expect(secretsFrom(`a=b; __Host-sluice-workspace=${secret}`, true)).toEqual([secret]);
    expect(secretsFrom(`sluice-workspace=${secret}`, true)).toEqual([]);
    expect(secretsFrom("__Host-sluice-workspace=short", true)).toEqual([]);
  });
});

describe("a target's query", () => {
  it.each([
    ["/lab", "/lab"],
    ["/lab?token=x", "/lab"],
    ["/lab?a=1&token=x&b=2", "/lab?a=1&b=2"],
    ["/lab?TOKEN=x&%74%6Fken=y&a=%zz", "/lab?a=%zz"],
    ["/files/a%20b?tokens=1&q=token", "/files/a%20b?tokens=1&q=token"],
    ["/x?a=?token=1", "/x?a=?token=1"],
  ])("%s becomes %s", (before, after) => {
    expect(withoutToken(before)).toBe(after);
  });
});

describe("connections", () => {
  it("are checked at once when a workspace or a right changes", async () => {
    class Counted extends Connections {
      sweeps = 0;
      override sweep(): void {
        this.sweeps += 1;
      }
    }
    const listeners = new Map<string, () => void>();
    const live: Pick<Live, "subscribe"> = {
      subscribe: (topics, listener) => {
        for (const topic of topics) listeners.set(topic, () => listener({ topic, id: null }));
        return () => listeners.clear();
      },
    };
    const connections = new Counted({} as Database, live as Live, {} as Logger);
    for (const topic of ["workspace", "audit"]) listeners.get(topic)?.();
    expect(connections.sweeps).toBe(2);
    await connections.close();
    expect(listeners.size).toBe(0);
  });
});

describe("the end of a WebSocket", () => {
  /** What a browser gets whose server sent these bytes before the gateway ends. */
  const received = (...chunks: Buffer[]): Buffer => {
    const [server, browser] = [new PassThrough(), new PassThrough()];
    const frames = new Frames(server);
    for (const chunk of chunks) server.emit("data", chunk);
    frames.endForRestart(browser);
    return (browser.read() as Buffer | null) ?? Buffer.alloc(0);
  };
  const restart = Buffer.from([0x88, 2, 0x03, 0xf4]);

  it("is told between two frames, however they came", () => {
    const long = Buffer.concat([Buffer.from([0x82, 126, 1, 44]), Buffer.alloc(300)]);
    const masked = Buffer.concat([Buffer.from([0x81, 0x83]), Buffer.alloc(4 + 3)]);
    expect(received()).toEqual(restart);
    expect(received(long, masked)).toEqual(restart);
    expect(received(long.subarray(0, 3), Buffer.concat([long.subarray(3), masked]))).toEqual(restart);
  });

  it("is never put into the middle of one", () => {
    expect(received(Buffer.from([0x82]))).toEqual(Buffer.alloc(0));
    expect(received(Buffer.from([0x82, 3, 1, 2]))).toEqual(Buffer.alloc(0));
  });
});
