import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, it } from "vitest";
import { throughUpstream, upstreamOf } from "./upstream.ts";

it("ends a proxy's answer that comes one byte at a time", { timeout: 10_000 }, async () => {
  const proxy = createServer((socket) => {
    const timer = setInterval(() => socket.write("H"), 100);
    socket.on("error", () => undefined).once("close", () => clearInterval(timer));
    socket.write("HTTP/1.1 200 OK\r\nx-filler: ");
  });
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  const upstream = upstreamOf({
    NODE_ENV: "test",
    HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
  });
  if (upstream === undefined) throw new Error("No proxy.");
  await expect(throughUpstream(upstream, "pypi.org:443", 500, new AbortController().signal)).rejects.toThrow(
    "does not answer",
  );
  proxy.close();
});
