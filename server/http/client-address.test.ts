import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { resetEnv } from "#server/env.ts";
import { addressBehind, clientAddress, networkOfClient } from "./client-address.ts";
import { watchRequests } from "./watch-requests.ts";

describe("the address of a client", () => {
  const claimed = "6.6.6.6, 10.0.0.7, 192.0.2.1";
  it.each([
    [0, claimed, "127.0.0.1"],
    [1, claimed, "192.0.2.1"],
    [2, claimed, "10.0.0.7"],
    // As many proxies were not passed: nobody whom one may believe has said anything.
    [4, claimed, "127.0.0.1"],
    [1, undefined, "127.0.0.1"],
    [1, "6.6.6.6, unknown", "127.0.0.1"],
    [1, "6.6.6.6, 10.0.0.7:4711", "10.0.0.7"],
    [1, "[2001:db8::1]:4711", "2001:db8::1"],
    [1, "2001:db8::1", "2001:db8::1"],
  ])("behind %d proxies, where %s was forwarded, is %s", (hops, forwarded, address) => {
    expect(addressBehind(hops, forwarded, "::ffff:127.0.0.1")).toBe(address);
  });

  it("is not known without a socket", () => {
    expect(addressBehind(0, "6.6.6.6", undefined)).toBeNull();
  });
});

describe("the network of a client", () => {
  it.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8:0001:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:DB8:1:2::9", "2001:db8:1:2::/64"],
    ["2001:db8::9", "2001:db8:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ])("%s is %s", (remoteAddress, network) => {
    expect(networkOfClient({ headers: {}, socket: { remoteAddress } }, 0)).toBe(network);
  });
});

describe("a server of this process", () => {
  afterEach(() => {
    delete process.env.SLUICE_PROXY_HOPS;
    resetEnv();
  });

  it.each([
    ["0", "127.0.0.1"],
    ["1", "192.0.2.1"],
  ])("with %s proxies in front is told %s, whatever the client claims", async (hops, address) => {
    process.env.SLUICE_PROXY_HOPS = hops;
    resetEnv();
    const stop = watchRequests();
    const server = createServer((incoming, answer) => {
      answer.end(clientAddress(new Headers({ ...(incoming.headers as Record<string, string>) })));
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const { port } = server.address() as AddressInfo;
    const headers = { "x-forwarded-for": "6.6.6.6, 192.0.2.1", "x-sluice-client-address": "7.7.7.7" };
    const answer = await new Promise<string>((resolve, reject) => {
      request({ host: "127.0.0.1", port, headers }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("end", () => resolve(text));
      })
        .on("error", reject)
        .end();
    });
    expect(answer).toBe(address);
    stop();
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  });
});
